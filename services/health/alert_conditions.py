"""The problems that alerts report: what keeps a server's roles from being right, as far as the database knows."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from sqlalchemy import func
from sqlmodel import col, select

from gateways.chains.catalogue import CHAINS
from gateways.transport import provider_reports
from locales import N_, _, ngettext, series, speaking
from locales.stored_texts import said
from models import RoleRefusal, Rule, Server, now
from models.db.session import AsyncSession, any_of
from services.core.addresses import shorten
from services.guilds import members_intent
from services.guilds.role_safety import ADMINISTRATOR, MANAGE_ROLES, translated
from services.health import provider_records
from services.health.provider_health import QUARANTINE_REASON, consequence
from services.health.server_health import NEEDED
from services.roles import breaker, rival_reports
from services.rules import pausing
from services.rules.rule_rows import newest_role_name
from services.runtime.database_faults import is_the_databases
from services.triggers import quarantine
from settings import settings

_BEGINS_AFTER = timedelta(seconds=30)
_ENDS_AFTER = timedelta(seconds=60)
"""How long a provider must have failed, or recovered, before an alert says so; brief failures are not reported."""
_TRIED_WITHIN = timedelta(minutes=10)
"""How long after the next try of a refused role was due it counts as refused, if Discord has accepted no change."""

_LACKS_MANAGE_ROLES = "manage_roles"
_TITLES = {
    "above_bot": N_("Role order broken"),
    "dangerous": N_("A role became dangerous"),
    "managed": N_("A role is managed now"),
    "linked": N_("A role became a Linked Role"),
    _LACKS_MANAGE_ROLES: N_("The bot lacks Manage Roles"),
    pausing.GONE: N_("A role was deleted"),
    pausing.REFUSED: N_("Discord refused a role"),
}

_STOPPED = N_("A rule has stopped")

T = TypeVar("T")
log = logging.getLogger(f"holdfast.{__name__}")


@dataclass(frozen=True, slots=True)
class Trouble:
    """One problem of one server; `certain` is False while it may still end within moments."""

    server_id: int
    key: str
    title: str
    text: str
    mend: str
    certain: bool = True


@dataclass(frozen=True, slots=True)
class AskedServers:
    """The servers that are asked about, each with its language.

    `unread` collects those about which not everything could be found out, because of an error of our own.
    """

    languages: Mapping[int, str]
    unread: set[int] = field(default_factory=set[int])


@dataclass(frozen=True, slots=True)
class Troubles:
    """The problems that were found. A server in `unread` may have more of them, so none of its problems is over."""

    found: list[Trouble]
    unread: Set[int]


async def of_all(db: AsyncSession, servers: Sequence[int]) -> Troubles:
    """Return the problems of these servers, in a fixed number of statements.

    An error of our own in one condition, or about one server, hides no other problem. Raises a database error.
    """
    rows = await db.exec(select(Server.id, Server.language).where(any_of(Server.id, servers)))
    asked = AskedServers({server_id or 0: language for server_id, language in rows.all()})
    found = list[Trouble]()
    for condition in (_paused, _tried_again, _too_many, _stopped, _lacking, _nodes, _quarantined, _rivals, _review):
        try:
            found += await condition(db, asked)
        except Exception as fault:
            if is_the_databases(fault):
                raise
            log.exception("alert condition not read condition=%s", condition.__name__.strip("_"))
            asked.unread.update(asked.languages)
    return Troubles(found, asked.unread)


def _each(asked: AskedServers, rows: Iterable[tuple[int, T]], say: Callable[[int, T], Trouble]) -> list[Trouble]:
    """Return the problem that each row means for its server, in the server's language."""
    found: list[Trouble] = []
    for server_id, row in rows:
        try:
            with speaking(asked.languages.get(server_id)):
                found.append(say(server_id, row))
        except Exception:
            log.exception("alert not written server=%s", server_id)
            asked.unread.add(server_id)
    return found


async def _paused(db: AsyncSession, asked: AskedServers) -> list[Trouble]:
    rows = await db.exec(
        select(Rule, Server.bot_permissions)
        .join(Server, col(Server.id) == col(Rule.server_id))
        .where(
            any_of(Rule.server_id, list(asked.languages)), Rule.state == "paused", col(Rule.deleted_at).is_(None),
            col(Rule.pause_cause).is_not(None), Rule.pause_cause != pausing.TOO_MANY,
        )
        .order_by(col(Rule.id))  # as on the Rules tab: a post lists them in this order
    )  # fmt: skip
    return _each(asked, [(row.server_id, (row, bits)) for row, bits in rows.all()], _paused_rule)


def _paused_rule(server_id: int, found: tuple[Rule, int | None]) -> Trouble:
    row, bits = found
    # `_lacking` reports the missing permission itself, once and not for each rule.
    reported = row.pause_cause == _LACKS_MANAGE_ROLES and bits is not None and not bits & (ADMINISTRATOR | MANAGE_ROLES)
    # Translators: {problem} is such as "Role order broken".
    title = _("{problem}: the rule {rule} is paused")
    until = _("Until then the rule neither gives nor takes; roles it gave stay.")
    return Trouble(
        server_id,
        _key_of_rule(row.id, row.pause_cause),
        title.format(problem=_(_TITLES.get(row.pause_cause or "", _STOPPED)), rule=row.name),
        f"{translated(row.pause_reason or '', row.role_name)} {until}",
        _(pausing.mend_of(row.pause_cause)),
        certain=not reported,
    )


def _key_of_rule(rule_id: int | None, cause: str | None) -> str:
    return f"rule:{rule_id}:{cause}"


async def _tried_again(db: AsyncSession, asked: AskedServers) -> list[Trouble]:
    """Return the rules of refused roles that are not paused right now, because a change is tried again.

    Their alerts are not over: Discord may refuse the next change too.
    """
    rows = await db.exec(
        select(Rule.server_id, Rule.id)
        .join(
            RoleRefusal,
            (col(RoleRefusal.server_id) == col(Rule.server_id)) & (col(RoleRefusal.role_id) == col(Rule.role_id)),
        )
        .where(
            any_of(Rule.server_id, list(asked.languages)), Rule.state == "active", col(Rule.deleted_at).is_(None),
            col(RoleRefusal.next_at) > now() - _TRIED_WITHIN,
        )
    )  # fmt: skip
    return [
        Trouble(server_id, _key_of_rule(rule_id, pausing.REFUSED), _(_TITLES[pausing.REFUSED]), "", "", certain=False)
        for server_id, rule_id in rows.all()
    ]


async def _too_many(db: AsyncSession, asked: AskedServers) -> list[Trouble]:
    """Return one problem for each server with rules paused for exceeding the limits: it can have thousands of them."""
    rows = await db.exec(
        select(col(Rule.server_id), func.count(), func.min(Rule.pause_reason))
        .where(
            any_of(Rule.server_id, list(asked.languages)), Rule.state == "paused", col(Rule.deleted_at).is_(None),
            Rule.pause_cause == pausing.TOO_MANY,
        )
        .group_by(col(Rule.server_id))
    )  # fmt: skip
    counted = [(server_id, (int(count), str(reason or ""))) for server_id, count, reason in rows.all()]
    return _each(asked, counted, _too_many_rules)


def _too_many_rules(server_id: int, row: tuple[int, str]) -> Trouble:
    count, reason = row
    title = ngettext(
        "Too many rules: {count} of them is paused", "Too many rules: {count} of them are paused", count
    ).format(count=count)
    stay = _("Paused rules neither give nor take; roles they gave stay.")
    mend = _(pausing.mend_of(pausing.TOO_MANY))
    return Trouble(server_id, f"rules:{pausing.TOO_MANY}", title, f"{said(reason)} {stay}", mend)


async def _stopped(db: AsyncSession, asked: AskedServers) -> list[Trouble]:
    result = await db.execute(
        f"""
        SELECT b.server_id, b.role_id, b.would_lose, b.holders, extract(epoch FROM b.tripped_at)::bigint,
               COALESCE({newest_role_name("b")}, b.role_id)
        FROM breaker b WHERE {breaker.IS_WAITING}
        AND b.server_id = ANY(CAST(:servers AS integer[]))
        """,
        {"servers": list(asked.languages)},
    )
    return _each(asked, [(server_id, tuple(row)) for server_id, *row in result.all()], _stopped_removals)


def _stopped_removals(server_id: int, row: tuple[Any, ...]) -> Trouble:
    role_id, losing, holders, moment, name = row
    told = _(
        "{count} of {holders} holders would have lost {role} within a day. Nothing more is taken for it until an admin "
        "approves."
    )
    return Trouble(
        server_id,
        f"breaker:{role_id}:{moment}",
        _("Removals of {role} were stopped").format(role=name),
        told.format(count=losing, holders=holders, role=name),
        _("Check why on the dashboard, then approve the removals if they are right."),
    )


async def _lacking(db: AsyncSession, asked: AskedServers) -> list[Trouble]:
    needed = 0
    for bit, _text in NEEDED.values():
        needed |= bit
    rows = await db.exec(
        select(Server.id, Server.bot_permissions).where(
            any_of(Server.id, list(asked.languages)),
            col(Server.bot_permissions).op("&")(ADMINISTRATOR) == 0,
            col(Server.bot_permissions).op("&")(needed) != needed,
        )
    )
    return _each(asked, [(server_id or 0, bits or 0) for server_id, bits in rows.all()], _lacking_permissions)


def _lacking_permissions(server_id: int, bits: int) -> Trouble:
    missing = [name for name, (bit, _text) in NEEDED.items() if not bits & bit]
    lacks = _("The bot lacks {permissions}.").format(permissions=series(missing))
    return Trouble(
        server_id,
        f"permissions:{','.join(missing)}",
        _("The bot lacks permissions"),
        f"{lacks} {' '.join(_(NEEDED[name][1]) for name in missing)}",
        _("Switch them on for the bot's role in Server Settings › Roles, or invite the bot again."),
    )


@dataclass(frozen=True, slots=True)
class _Node:
    """A node that fails, or that failed until just now."""

    provider: str
    title: str
    number: int
    reason: str | None
    nodes: int
    well: int
    certain: bool


async def _nodes(db: AsyncSession, asked: AskedServers) -> list[Trouble]:
    """Return failing or just recovered nodes, for the servers with rules on their chain."""
    moment = now()
    rows = (await provider_records.states(db)).values()
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
        """
        SELECT DISTINCT r.server_id, chain #>> '{}' FROM rule r,
               LATERAL jsonb_path_query(r.expression, '$.**.chain') AS chain
        WHERE r.server_id = ANY(CAST(:servers AS integer[])) AND r.deleted_at IS NULL
        AND chain #>> '{}' = ANY(CAST(:chains AS text[]))
        """,
        {"servers": list(asked.languages), "chains": sorted(chains)},
    )
    concerned: dict[str, list[int]] = {}
    for server_id, chain in asking.all():
        concerned.setdefault(str(chain), []).append(int(server_id))
    found: list[Trouble] = []
    for row in shaky:
        chain, _colon, place = row.provider.partition(":")
        all_nodes = [other for other in rows if other.provider.startswith(f"{chain}:")]
        well = sum(other.state == provider_reports.OK for other in all_nodes)
        certain = row.state != provider_reports.OK and moment - row.since >= _BEGINS_AFTER
        node = _Node(row.provider, CHAINS[chain].title, int(place) + 1, row.reason, len(all_nodes), well, certain)
        found += _each(asked, [(server_id, node) for server_id in concerned.get(chain, [])], _failing_node)
    return found


def _failing_node(server_id: int, node: _Node) -> Trouble:
    return Trouble(
        server_id,
        f"node:{node.provider}",
        _("{chain} node {number} does not answer as it should").format(chain=node.title, number=node.number),
        (node.reason or _("No answer.")) + " " + consequence(node.title, node.nodes, node.well),
        _("Nothing for you to do: it continues automatically. If it lasts, tell the person who runs the bot."),
        node.certain,
    )


async def _quarantined(db: AsyncSession, asked: AskedServers) -> list[Trouble]:
    """Return the contracts of these servers' rules that are not followed right now."""
    found = await quarantine.of_servers(db, list(asked.languages))
    return _each(asked, [(one.server_id, one) for one in found], _not_followed)


def _not_followed(server_id: int, one: quarantine.Quarantined) -> Trouble:
    address = shorten(one.contract)
    late = _("Purchases and sales of {contract} show later than usual: {reason}")
    return Trouble(
        server_id,
        f"quarantine:{one.chain}:{one.contract}",
        _("{contract} on {chain} is not followed for a while").format(contract=address, chain=CHAINS[one.chain].title),
        late.format(contract=address, reason=_(QUARANTINE_REASON)),
        _(
            "Nothing for you to do: it is followed again after a pause. If it lasts, ask the collection's makers why "
            "their contract writes so many logs."
        ),
    )


async def _rivals(db: AsyncSession, asked: AskedServers) -> list[Trouble]:
    """Return the rivals that move roles of these servers' rules, and the roles left alone because of them."""
    moving = await rival_reports.of_servers(db, list(asked.languages))
    alone = await rival_reports.truces_of_servers(db, list(asked.languages))
    return [
        *_each(asked, [(one.server_id, one) for one in moving], _moving_roles),
        *_each(asked, [(one.server_id, one) for one in alone], _left_alone),
    ]


async def _review(db: AsyncSession, asked: AskedServers) -> list[Trouble]:
    """Return for each server that Discord will soon review the intent, if the bot uses it and is in few servers."""
    count, servers = await members_intent.count_members(db)
    if servers > members_intent.MOST_SERVERS or count < members_intent.ENDS_BELOW:
        return []
    heard = settings().members_intent != "off" and await members_intent.hears_members(db)
    return _each(asked, [(server_id, count) for server_id in asked.languages], _reviewed) if heard else []


def _reviewed(server_id: int, count: int) -> Trouble:
    return Trouble(
        server_id,
        "intent review",
        _("Discord reviews the Server Members Intent soon"),
        members_intent.review_warning(count),
        _(
            "The person who runs the bot answers Discord's questions in the Developer Portal; "
            "docs/privileged-intents.md has the answers."
        ),
        certain=count >= members_intent.WARNED_FROM,
    )


def _moving_roles(server_id: int, one: rival_reports.Rival) -> Trouble:
    # The alert waits while the name is looked up.
    key = f"rival:{one.role_id}:{one.actor_id or one.reason}"
    return Trouble(server_id, key, one.title, one.text, one.mend, certain=not one.searching)


def _left_alone(server_id: int, one: rival_reports.TruceOfRole) -> Trouble:
    return Trouble(server_id, f"truce:{one.role_id}", one.title, one.text, one.mend)
