"""The figures of the dashboard: each is a count of stored rows, compared with a count made by hand."""

from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime, timedelta

import pytest
from sqlmodel import col, select

from models import Access, Event, Member, MemberChoice, Rule, Server, User, now, transaction
from models.db.session import AsyncSession
from services.core import rollups
from services.core.actors import Actor
from services.core.errors import FieldRefused, ServerNotFound
from services.servers import analytics
from services.servers.analytics import RANGES
from tests.support.builders import a_grant, a_member, a_rule, a_server, address, snowflake

ROLE, OTHER_ROLE = "7001", "7002"


def ago(days: float) -> datetime:
    """Return noon `days` days ago, or the present moment for 0."""
    return now().replace(hour=12, minute=0) - timedelta(days=days) if days else now()


async def an_admin(db: AsyncSession, *servers: Server) -> Actor:
    """Store and return somebody who runs these servers."""
    user = User(discord_id=snowflake(), username="an admin")
    db.add(user)
    await db.flush()
    db.add_all([Access(server_id=server.id or 0, discord_id=user.discord_id) for server in servers])
    return Actor(user_id=user.id or 0, discord_id=user.discord_id, username=user.username)


NAMING = {"role.given", "role.taken_over", "role.reasons"}
"""The kinds of lines that say by which rules somebody has a role from then on."""


class Log:
    """A writer of log lines at times that the test chooses."""

    def __init__(self, db: AsyncSession, server: Server) -> None:
        self.db, self.server = db, server

    async def line(
        self, kind: str, member: Member | None, days: float, role: str | None = ROLE, rules: Sequence[Rule] = ()
    ) -> None:
        data = {"ruleIds": [rule.id for rule in rules]} if kind in NAMING else {}
        self.db.add(
            Event(kind=kind, at=ago(days), server_id=None if kind == "wallet.proved" else self.server.id,
                  subject=member.discord_id if member else None, role_id=role, data=data)
        )  # fmt: skip
        await self.db.flush()


async def shown(actor: Actor, days: int = 7, server: Server | None = None) -> analytics.HistoryView:
    async with transaction() as db:
        await rollups.begin(db)  # the lines of these tests have other times than the changes that they record
        await rollups.fill(db)
        return await analytics.history(db, actor, days, server.id if server else None)


async def counted(kind: str, who: set[str] | None = None) -> Counter[date]:
    """Return how many lines of a kind the log has on each day."""
    async with transaction() as db:
        lines = (await db.exec(select(Event).where(Event.kind == kind))).all()
    return Counter(line.at.date() for line in lines if who is None or line.subject in who)


async def test_proofs_roles_given_and_taken_are_counts_of_the_log_per_day(database: str) -> None:
    async with transaction() as db:
        server = await a_server(db)
        actor, log = await an_admin(db, server), Log(db, server)
        members = [await a_member(db, server, wallet=address()) for _ in range(3)]
        for days, member in ((0, 0), (0, 1), (3, 2), (6, 0), (9, 1), (40, 2)):
            await log.line("wallet.proved", members[member], days, role=None)
            await log.line("role.given", members[member], days)
        for days in (1, 1, 8):
            await log.line("role.taken", members[0], days)
    for days in RANGES:
        history = await shown(actor, days)
        assert len(history.days) == days
        assert (history.days[-1], history.days[0]) == (now().date(), now().date() - timedelta(days=days - 1))
        for series, kind in (
            (history.proofs, "wallet.proved"), (history.roles_given, "role.given"), (history.roles_taken, "role.taken"),
        ):  # fmt: skip
            log_has = await counted(kind)
            assert series == tuple(log_has[day] for day in history.days), (days, kind)


async def test_only_proofs_of_present_members_whose_wallets_count_are_shown(database: str) -> None:
    async with transaction() as db:
        server, elsewhere = await a_server(db), await a_server(db)
        actor, log = await an_admin(db, server), Log(db, server)
        here, left, private, stranger = [
            await a_member(db, where, wallet=address()) for where in (server, server, server, elsewhere)
        ]
        left.left_at = now()
        user = (await db.exec(select(User).where(User.discord_id == private.discord_id))).one()
        db.add_all([left, MemberChoice(server_id=server.id or 0, user_id=user.id or 0, use_wallets=False)])
        for member in (here, left, private, stranger):
            await log.line("wallet.proved", member, 0, role=None)
    assert sum((await shown(actor)).proofs) == 1
    async with transaction() as db:
        assert (await analytics.totals(db, actor)).total_verifications == 1


async def replayed(server: Server) -> list[dict[int, int]]:
    """Return, for each of the last seven days, how many hold each rule's role, by a plain loop over the log's lines."""
    async with transaction() as db:
        lines = (await db.exec(select(Event).where(Event.server_id == server.id).order_by(col(Event.id)))).all()
    days: list[dict[int, int]] = []
    for back in reversed(range(7)):
        holds: dict[tuple[str | None, str | None], list[int]] = {}
        for line in lines:
            if line.at.date() > now().date() - timedelta(days=back):
                continue
            who = (line.subject, line.role_id)
            match line.kind:
                case "role.given" | "role.taken_over" | "role.reasons":
                    holds[who] = line.data["ruleIds"]
                case "role.taken" | "role.lost":
                    holds.pop(who, None)
                case "member.left":
                    holds = {key: rules for key, rules in holds.items() if key[0] != line.subject}
                case "role.deleted":
                    holds = {key: rules for key, rules in holds.items() if key[1] != line.role_id}
                case _:
                    pass
        days.append(Counter(rule for rules in holds.values() for rule in rules))
    return days


async def test_holders_of_each_rule_are_those_whom_the_log_has_given_its_role_and_not_gone(database: str) -> None:
    async with transaction() as db:
        server = await a_server(db)
        actor, log = await an_admin(db, server), Log(db, server)
        first, second, third = [await a_rule(db, server, role) for role in (ROLE, ROLE, OTHER_ROLE)]
        ann, ben, cat, dan = [await a_member(db, server) for _ in range(4)]
        await log.line("role.given", ann, 30, rules=[first])
        await log.line("role.given", ben, 5, rules=[first])
        await log.line("role.given", ben, 5, OTHER_ROLE, rules=[third])
        await log.line("role.reasons", ben, 4, rules=[first, second])
        await log.line("role.taken_over", cat, 4, rules=[second])
        await log.line("role.given", dan, 3, rules=[first])
        await log.line("role.reasons", ben, 3, rules=[second])
        await log.line("role.lost", dan, 3)
        await log.line("role.given", dan, 2, rules=[first])
        await log.line("member.left", ben, 2, role=None)
        await log.line("role.taken", ann, 1)
        await log.line("role.given", ann, 1, OTHER_ROLE, rules=[third])
        await log.line("role.deleted", None, 0, OTHER_ROLE)
        for member, rule in ((cat, second), (dan, first)):
            await a_grant(db, member, rule)
    history = await shown(actor)
    by_hand = await replayed(server)
    assert {rule.id: rule.holders for rule in history.rules} == {
        rule.id: tuple(day.get(rule.id or 0, 0) for day in by_hand) for rule in (first, second, third)
    }
    assert {rule.id: rule.holders for rule in history.rules}[first.id or 0] == (1, 2, 2, 1, 2, 1, 1)


async def test_the_rules_with_most_holders_come_first_and_deleted_ones_not_at_all(database: str) -> None:
    async with transaction() as db:
        server = await a_server(db)
        actor, log = await an_admin(db, server), Log(db, server)
        few, many, gone = [await a_rule(db, server, role) for role in (ROLE, OTHER_ROLE, "7003")]
        gone.deleted_at = now()
        db.add(gone)
        member = await a_member(db, server)
        await log.line("role.given", member, 0, OTHER_ROLE, rules=[many])
        await a_grant(db, member, many)
    assert [rule.id for rule in (await shown(actor)).rules] == [many.id, few.id]


async def test_one_server_can_be_shown_alone_and_no_foreign_one(database: str) -> None:
    async with transaction() as db:
        one, two, foreign = await a_server(db), await a_server(db), await a_server(db)
        actor = await an_admin(db, one, two)
        for server in (one, two, foreign):
            rule = await a_rule(db, server, ROLE)
            await Log(db, server).line("role.given", await a_member(db, server), 0, rules=[rule])
    assert sum((await shown(actor)).roles_given) == 2
    assert sum((await shown(actor, server=one)).roles_given) == 1
    assert len((await shown(actor, server=two)).rules) == 1
    with pytest.raises(ServerNotFound):
        await shown(actor, server=foreign)


async def test_who_runs_no_server_sees_nothing_of_anybody(database: str) -> None:
    async with transaction() as db:
        server = await a_server(db)
        await Log(db, server).line("role.given", await a_member(db, server), 0, rules=[await a_rule(db, server, ROLE)])
        actor = await an_admin(db)
    history = await shown(actor)
    assert (sum(history.roles_given), sum(history.proofs), history.rules) == (0, 0, ())


async def test_another_range_is_refused(database: str) -> None:
    async with transaction() as db:
        actor = await an_admin(db)
    with pytest.raises(FieldRefused, match="Choose 7, 30 or 90 days"):
        await shown(actor, 8)
