"""Analytics over the servers that a person runs: present totals and their history."""

from datetime import date, timedelta

from locales import _
from models import now
from models.db.session import AsyncSession
from services.core import rollups
from services.core.actors import Actor
from services.core.errors import FieldRefused, ServerNotFound
from services.core.json_view import json_view
from services.servers import verified_counts

RANGES = (7, 30, 90)
"""The numbers of days that a history can cover."""


@json_view
class AnalyticsView:
    """Counts over the servers that a person runs."""

    total_verifications: int
    active_rules: int
    connected_servers: int


@json_view
class RuleHistory:
    """A rule, and how many members had its role because of it at the end of each day."""

    id: int
    name: str
    server_name: str
    holders: tuple[int, ...]


@json_view
class HistoryView:
    """The counts of each day (in UTC; the last day is today); every series is as long as `days`."""

    days: tuple[date, ...]
    proofs: tuple[int, ...]
    roles_given: tuple[int, ...]
    roles_taken: tuple[int, ...]
    rules: tuple[RuleHistory, ...]


async def totals(db: AsyncSession, actor: Actor) -> AnalyticsView:
    """Return the number of verified members, active rules, and servers with the bot (or, if none, of known servers)."""
    result = await db.execute(
        """
        WITH mine AS (
            SELECT s.id, s.bot_invited FROM access a JOIN server s ON s.id = a.server_id WHERE a.discord_id = :me
        )
        SELECT
          (SELECT count(*) FROM rule r JOIN mine ON mine.id = r.server_id
           WHERE r.state = 'active' AND r.deleted_at IS NULL),
          (SELECT count(*) FROM mine WHERE bot_invited),
          (SELECT count(*) FROM mine)
        """,
        {"me": actor.discord_id},
    )
    rules, with_bot, servers = (int(value) for value in result.one())
    return AnalyticsView(await verified_counts.people(db, await _servers(db, actor)), rules, with_bot or servers)


async def history(db: AsyncSession, actor: Actor, days: int, server_id: int | None = None) -> HistoryView:
    """Return the last `days` days in one of the actor's servers, or in all of them together.

    Only proofs of present members whose wallets count there are included, each once even if its member is in several of
    these servers. Roles given and taken, and the holders of each rule at the end of each day, come from stored counts.
    Raises FieldRefused for another range, ServerNotFound for a server that the actor does not run.
    """
    if days not in RANGES:
        raise FieldRefused("days", _("Choose 7, 30 or 90 days."))
    servers = await _servers(db, actor)
    if server_id is not None and server_id not in servers:
        raise ServerNotFound
    last = now().date()
    shown = tuple(last - timedelta(days=back) for back in reversed(range(days)))
    wanted = sorted(servers) if server_id is None else [server_id]
    counted = await rollups.by_day(db, wanted, ("role.given", "role.taken"), shown[0])
    proved = await verified_counts.proofs(db, wanted, shown[0])
    return HistoryView(
        days=shown,
        proofs=tuple(proved.get(day, 0) for day in shown),
        roles_given=tuple(counted.get(("role.given", day), 0) for day in shown),
        roles_taken=tuple(counted.get(("role.taken", day), 0) for day in shown),
        rules=await _holders(db, wanted, shown),
    )


async def _servers(db: AsyncSession, actor: Actor) -> set[int]:
    result = await db.execute("SELECT server_id FROM access WHERE discord_id = :me", {"me": actor.discord_id})
    return {int(server_id) for (server_id,) in result.all()}


_RULES = """
    SELECT r.id, r.name, s.name FROM rule r JOIN server s ON s.id = r.server_id
    WHERE r.server_id = ANY(CAST(:servers AS integer[])) AND r.deleted_at IS NULL ORDER BY r.id
"""


async def _holders(db: AsyncSession, servers: list[int], shown: tuple[date, ...]) -> tuple[RuleHistory, ...]:
    """Return each rule's series, computed backwards from its present holders; the most present holders come first."""
    kept = await rollups.holder_steps(db, servers, shown[0])
    found: list[RuleHistory] = []
    for rule_id, name, server in (await db.execute(_RULES, {"servers": servers})).all():
        rule = kept.get(rule_id, rollups.HolderSteps(0, {}))
        count, series = rule.present, list[int]()
        for day in reversed(shown):
            series.append(max(count, 0))  # the log need not match the ledger
            count -= rule.steps.get(day, 0)
        found.append(RuleHistory(rule_id, name, server, tuple(reversed(series))))
    return tuple(sorted(found, key=lambda rule: (-rule.holders[-1], rule.id)))
