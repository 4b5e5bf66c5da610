"""The conditions that alerts report: what prevents a server's roles right now, as far as the database knows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import func, text
from sqlmodel import col, select

from gateways.chains.catalogue import CHAINS
from gateways.transport import provider_reports
from models import ProviderState, Rule, Server, now
from models.db.session import AsyncSession
from services.core.addresses import shorten
from services.guilds.role_safety import ADMINISTRATOR
from services.health.backlog import mend_of
from services.health.provider_status import QUARANTINE_REASON, consequence
from services.health.server import NEEDED
from services.rules import pausing
from services.triggers import quarantine

_BEGINS_AFTER = timedelta(seconds=30)
_ENDS_AFTER = timedelta(seconds=60)
"""How long a provider must have failed (or recovered) before an alert: brief failures are no news."""

_TITLES = {
    "above_bot": "Role order broken",
    "dangerous": "A role became dangerous",
    "managed": "A role is managed now",
    "linked": "A role became a Linked Role",
    "manage_roles": "The bot lacks Manage Roles",
    pausing.GONE: "A role was deleted",
    pausing.REFUSED: "Discord refused a role",
}


@dataclass(frozen=True, slots=True)
class Trouble:
    """One problem of one server; `certain` is False while it may still end within moments."""

    server_id: int
    key: str
    title: str
    text: str
    mend: str
    certain: bool = True


async def of_all(db: AsyncSession, servers: Sequence[int]) -> list[Trouble]:
    """Return the problems of these servers, in a fixed number of statements."""
    return [
        *await _paused(db, servers),
        *await _too_many(db, servers),
        *await _stopped(db, servers),
        *await _lacking(db, servers),
        *await _nodes(db, servers),
        *await _quarantined(db, servers),
    ]


async def _paused(db: AsyncSession, servers: Sequence[int]) -> list[Trouble]:
    rows = await db.exec(
        select(Rule).where(
            col(Rule.server_id).in_(servers), Rule.state == "paused", col(Rule.deleted_at).is_(None),
            col(Rule.pause_cause).is_not(None), Rule.pause_cause != pausing.TOO_MANY,
        )
    )  # fmt: skip
    return [
        Trouble(
            row.server_id, f"rule:{row.id}:{row.pause_cause}",
            f"{_TITLES.get(row.pause_cause or '', 'A rule has stopped')}: the rule {row.name} is paused",
            f"{row.pause_reason} Until then the rule neither gives nor takes; roles it gave stay.",
            mend_of(row.pause_cause),
        )
        for row in rows.all()
    ]  # fmt: skip


async def _too_many(db: AsyncSession, servers: Sequence[int]) -> list[Trouble]:
    """Return servers with rules paused for exceeding the limits, in one problem: there can be thousands."""
    rows = await db.exec(
        select(col(Rule.server_id), func.count(), func.min(Rule.pause_reason))
        .where(
            col(Rule.server_id).in_(servers), Rule.state == "paused", col(Rule.deleted_at).is_(None),
            Rule.pause_cause == pausing.TOO_MANY,
        )
        .group_by(col(Rule.server_id))
    )  # fmt: skip
    return [
        Trouble(
            server_id, f"rules:{pausing.TOO_MANY}", f"Too many rules: {count} of them are paused",
            f"{reason} Paused rules neither give nor take; roles they gave stay.", mend_of(pausing.TOO_MANY),
        )
        for server_id, count, reason in rows.all()
    ]  # fmt: skip


async def _stopped(db: AsyncSession, servers: Sequence[int]) -> list[Trouble]:
    result = await db.execute(
        text(
            """
            SELECT b.server_id, b.role_id, b.would_lose, b.holders, extract(epoch FROM b.tripped_at)::bigint,
                   COALESCE((SELECT r.role_name FROM rule r WHERE r.server_id = b.server_id AND r.role_id = b.role_id
                             ORDER BY r.id DESC LIMIT 1), b.role_id)
            FROM breaker b WHERE b.approved_at IS NULL AND b.server_id = ANY(CAST(:servers AS integer[]))
            """
        ),
        {"servers": list(servers)},
    )
    return [
        Trouble(
            server_id, f"breaker:{role_id}:{moment}", f"Removals of {name} were stopped",
            f"{losing} of {holders} holders would have lost {name} within a day. Nothing more is taken for it until an "
            "admin approves.",
            "Check why on the dashboard, then approve the removals if they are right.",
        )
        for server_id, role_id, losing, holders, moment, name in result.all()
    ]  # fmt: skip


async def _lacking(db: AsyncSession, servers: Sequence[int]) -> list[Trouble]:
    needed = 0
    for bit, _ in NEEDED.values():
        needed |= bit
    rows = await db.exec(
        select(Server.id, Server.bot_permissions).where(
            col(Server.id).in_(servers),
            col(Server.bot_permissions).op("&")(ADMINISTRATOR) == 0,
            col(Server.bot_permissions).op("&")(needed) != needed,
        )
    )
    found: list[Trouble] = []
    for server_id, bits in rows.all():
        missing = [name for name, (bit, _) in NEEDED.items() if not (bits or 0) & bit]
        found.append(
            Trouble(
                server_id or 0, f"permissions:{','.join(missing)}", "The bot lacks permissions",
                f"The bot lacks {', '.join(missing)}. " + " ".join(NEEDED[name][1] for name in missing),
                "Switch them on for the bot's role in Server Settings › Roles, or invite the bot again.",
            )
        )  # fmt: skip
    return found


async def _nodes(db: AsyncSession, servers: Sequence[int]) -> list[Trouble]:
    """Return failing or just recovered nodes, for the servers with rules on their chain."""
    moment = now()
    rows = (await db.exec(select(ProviderState))).all()
    shaky = [
        row
        for row in rows
        if row.provider.partition(":")[0] in CHAINS
        and (row.state != provider_reports.OK or moment - row.since < _ENDS_AFTER)
    ]
    if not shaky:
        return []
    chains = {row.provider.partition(":")[0] for row in shaky}
    asking = await db.execute(
        text(
            """
            SELECT DISTINCT r.server_id, chain #>> '{}' FROM rule r,
                   LATERAL jsonb_path_query(r.expression, '$.**.chain') AS chain
            WHERE r.server_id = ANY(CAST(:servers AS integer[])) AND r.deleted_at IS NULL
            AND chain #>> '{}' = ANY(CAST(:chains AS text[]))
            """
        ),
        {"servers": list(servers), "chains": sorted(chains)},
    )
    concerned: dict[str, list[int]] = {}
    for server_id, chain in asking.all():
        concerned.setdefault(str(chain), []).append(int(server_id))
    found: list[Trouble] = []
    for row in shaky:
        chain, _, place = row.provider.partition(":")
        title = CHAINS[chain].title
        all_nodes = [other for other in rows if other.provider.startswith(f"{chain}:")]
        well = sum(other.state == provider_reports.OK for other in all_nodes)
        certain = row.state != provider_reports.OK and moment - row.since >= _BEGINS_AFTER
        told = f"{row.reason or 'No answer.'} {consequence(title, len(all_nodes), well)}"
        found += [
            Trouble(
                server_id, f"node:{row.provider}", f"{title} node {int(place) + 1} does not answer as it should", told,
                "Nothing for you to do: it continues automatically. If it lasts, tell the person who runs the bot.",
                certain,
            )
            for server_id in concerned.get(chain, [])
        ]  # fmt: skip
    return found


async def _quarantined(db: AsyncSession, servers: Sequence[int]) -> list[Trouble]:
    """Return the contracts of these servers' rules that are not followed right now."""
    return [
        Trouble(
            one.server_id, f"quarantine:{one.chain}:{one.contract}",
            f"{shorten(one.contract)} on {CHAINS[one.chain].title} is not followed for a while",
            f"Purchases and sales of {shorten(one.contract)} show later than usual: {QUARANTINE_REASON}",
            "Nothing for you to do: it is followed again after a pause. If it lasts, ask the collection's makers why "
            "their contract writes so many logs.",
        )
        for one in await quarantine.of_servers(db, servers)
    ]  # fmt: skip
