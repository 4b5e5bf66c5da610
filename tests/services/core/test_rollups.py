"""The counts that triggers keep, compared with a recount of the log and the ledger."""

import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import date
from typing import Any, cast

import pytest
from sqlalchemy import func, text
from sqlmodel import col, delete, select, update

from models import Grant, Member, Rule, Server, transaction
from models.db.session import AsyncSession
from services.core import audit, rollups
from services.core.event_kinds import Kind
from services.guilds import members
from services.privacy import erasure
from services.rules import pausing
from tests.support.builders import a_member, a_rule, a_server, snowflake
from tests.support.missing_triggers import each_missing

pytestmark = pytest.mark.usefixtures("database")
Counts = tuple[dict[tuple[int, str, date, int], int], dict[tuple[int, int], int]]
SEEDS = 6
"""Number of histories; at least one of them has to show that a trigger is missing."""


async def counts() -> Counts:
    """Return all counts that are not 0, by what they count."""
    async with transaction() as db:
        await rollups.fold(db)
        days = await db.execute(text("SELECT server_id, kind, day, rule_id, total FROM rollup WHERE total <> 0"))
        present = await db.execute(text("SELECT server_id, rule_id, total FROM holder_count WHERE total <> 0"))
        return (
            {(server, kind, day, rule): total for server, kind, day, rule, total in days.all()},
            {(server, rule): total for server, rule, total in present.all()},
        )


async def recounted() -> Counts:
    async with transaction() as db:
        await rollups.begin(db)
    async with transaction() as db:
        await rollups.fill(db)
    return await counts()


async def listed(db: AsyncSession, server: Server) -> int:
    """Return how many members the table has, without bots and members who left."""
    present = select(func.count()).where(
        Member.server_id == server.id, col(Member.left_at).is_(None), col(Member.bot).is_(False)
    )
    return (await db.exec(present)).one()


class Days:
    """Random events in one server, made by the same writes that the product makes."""

    def __init__(self, db: AsyncSession, server: Server, rules: list[Rule], chosen: random.Random) -> None:
        self.db, self.server, self.rules, self.chosen = db, server, rules, chosen

    async def line(self, kind: Kind, grant: Grant, **data: Any) -> None:
        line = audit.line(
            kind, server_id=grant.server_id, subject=grant.discord_id, role_id=grant.role_id, data=data
        )  # fmt: skip
        await audit.record(self.db, line)

    async def one(self) -> Grant | None:
        found = (await self.db.exec(select(Grant).where(Grant.state == "held").order_by(col(Grant.id)))).all()
        return self.chosen.choice(found) if found else None

    async def give(self, *, gift: bool = False) -> None:
        rule = self.chosen.choice(self.rules)
        present = select(Member).where(col(Member.left_at).is_(None)).order_by(col(Member.discord_id))
        member = self.chosen.choice((await self.db.exec(present)).all())
        known = await self.db.exec(
            select(Grant).where(Grant.discord_id == member.discord_id, Grant.role_id == rule.role_id)
        )
        if known.first() is not None:
            return
        own = [] if gift else [rule.id or 0]
        grant = Grant(
            server_id=member.server_id, discord_id=member.discord_id, role_id=rule.role_id, rule_ids=own, state="giving"
        )
        self.db.add(grant)
        await self.db.flush()
        await self.db.exec(update(Grant).where(col(Grant.id) == grant.id).values(state="held"))
        await self.line("role.given", grant, ruleIds=own, gift=gift)

    async def gift(self) -> None:
        await self.give(gift=True)

    async def take_over(self) -> None:
        rule = self.chosen.choice(self.rules)
        member = await self.anybody()
        known = select(Grant).where(Grant.discord_id == member.discord_id, Grant.role_id == rule.role_id)
        if (await self.db.exec(known)).first() is None:
            own = [rule.id or 0]
            grant = Grant(
                server_id=member.server_id, discord_id=member.discord_id, role_id=rule.role_id, rule_ids=own,
                state="held", had_before=True,
            )  # fmt: skip
            self.db.add(grant)
            await self.db.flush()
            await self.line("role.taken_over", grant, ruleIds=own)

    async def reasons(self) -> None:
        if (grant := await self.one()) is None:
            return
        fitting = [rule.id or 0 for rule in self.rules if rule.role_id == grant.role_id]
        own = sorted(self.chosen.sample(fitting, self.chosen.randint(1, len(fitting))))
        await self.db.exec(update(Grant).where(col(Grant.id) == grant.id).values(rule_ids=own))
        await self.line("role.reasons", grant, ruleIds=own)

    async def take(self) -> None:
        if (grant := await self.one()) is None:
            return
        await self.db.exec(update(Grant).where(col(Grant.id) == grant.id).values(state="taking"))
        if self.chosen.random() < 0.7:
            await self.db.exec(delete(Grant).where(col(Grant.id) == grant.id))
            await self.line("role.taken", grant, ruleIds=grant.rule_ids)
        else:  # undone in time
            await self.db.exec(update(Grant).where(col(Grant.id) == grant.id).values(state="giving"))
            await self.db.exec(update(Grant).where(col(Grant.id) == grant.id).values(state="held"))
            await self.line("role.given", grant, ruleIds=grant.rule_ids)

    async def lose(self) -> None:
        if (grant := await self.one()) is not None:
            await self.db.exec(update(Grant).where(col(Grant.id) == grant.id).values(state="lost"))
            await self.line("role.lost", grant)

    async def leave(self) -> None:
        if (grant := await self.one()) is not None:
            await members.left_many(self.db, [(grant.server_id, grant.discord_id)])

    async def come_back(self) -> None:
        (member := await self.anybody()).left_at = None
        self.db.add(member)
        await self.db.flush()

    async def become_a_bot(self) -> None:
        member = await self.anybody()
        member.bot = not member.bot
        self.db.add(member)
        await self.db.flush()

    async def vanish(self) -> None:
        await self.db.delete(await self.anybody())
        self.db.add(Member(server_id=self.server.id or 0, discord_id=snowflake(), name="somebody"))
        await self.db.flush()

    async def anybody(self) -> Member:
        return self.chosen.choice((await self.db.exec(select(Member).order_by(col(Member.discord_id)))).all())

    async def delete_role(self) -> None:
        if self.chosen.random() < 0.2:
            await pausing.role_gone(self.db, self.server.id or 0, self.chosen.choice(self.rules).role_id)

    async def forget(self) -> None:
        if (grant := await self.one()) is not None:
            await self.db.execute(
                text("INSERT INTO farewell (discord_id, pseudonym, asked_at) VALUES (:who, :name, now()) "
                     "ON CONFLICT DO NOTHING"),
                {"who": grant.discord_id, "name": f"forgotten-{snowflake()}"},
            )  # fmt: skip
            await erasure.finish(self.db)

    async def something(self) -> None:
        do = self.chosen.choice(
            [self.give, self.give, self.give, self.give, self.gift, self.take_over, self.reasons, self.take, self.lose,
             self.leave, self.delete_role, self.forget, self.come_back, self.become_a_bot, self.vanish]
        )  # fmt: skip
        await do()
        self.db.expire_all()


async def history(chosen: random.Random) -> AsyncGenerator[tuple[Any, Any]]:
    """Yield pairs of a kept count and a count of the tables, during a random history and at its end."""
    async with transaction() as db:
        server = await a_server(db)
        rules = [await a_rule(db, server, role) for role in ("1", "1", "2", "3", "3", "3")]
        for _ in range(12):
            await a_member(db, server)
    for _ in range(12):
        async with transaction() as db:
            days = Days(db, server, rules, chosen)
            for _ in range(chosen.randint(1, 8)):
                await days.something()
        async with transaction() as db:
            yield await rollups.members(db, server.id or 0), await listed(db, server)
            if chosen.random() < 0.3:
                await rollups.fold(db)
                yield await rollups.members(db, server.id or 0), await listed(db, server)
    yield await counts(), await recounted()


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_what_is_counted_while_it_happens_is_what_a_recount_finds(seed: int) -> None:
    found = None
    async for found, right in history(random.Random(seed)):
        assert found == right
    days, _ = cast("Counts", found)
    assert days


async def test_a_missing_trigger_is_noticed() -> None:
    unnoticed = list[str]()
    async for trigger in each_missing("rollup_"):
        for seed in range(SEEDS):
            async with aclosing(history(random.Random(seed))) as steps:
                if await anext((True async for found, right in steps if found != right), False):
                    break
        else:
            unnoticed.append(trigger)
    assert not unnoticed


async def test_a_line_is_counted_whatever_is_written_between_the_start_of_the_counts_and_their_filling() -> None:
    async with transaction() as db:
        server = await a_server(db)
    line = audit.line("server.added", server_id=server.id)
    async with transaction() as db:
        await audit.record(db, line)
    async with transaction() as db:
        await rollups.begin(db)
    async with transaction() as db:
        await audit.record_all(db, [line, line])
    async with transaction() as db:
        await rollups.fill(db)
        await rollups.fill(db)  # a second time changes nothing
    days, _ = await counts()
    assert list(days.values()) == [3]


async def test_counts_that_are_not_folded_yet_are_read_too() -> None:
    async with transaction() as db:
        server = await a_server(db)
        rule = await a_rule(db, server, "1")
        for _ in range(2):
            member = await a_member(db, server)
            db.add(
                Grant(server_id=server.id or 0, discord_id=member.discord_id, role_id="1", rule_ids=[rule.id or 0],
                      state="held")
            )  # fmt: skip
            await db.flush()
            assert await rollups.holders(db, [server.id or 0])
            await rollups.fold(db)
        assert await rollups.holders(db, [server.id or 0]) == {rule.id: 2}


async def test_steps_that_undo_each_other_leave_no_holders() -> None:
    async with transaction() as db:
        server = await a_server(db)
        rule = await a_rule(db, server, "1")
        member = await a_member(db, server)
        db.add(
            Grant(server_id=server.id or 0, discord_id=member.discord_id, role_id="1", rule_ids=[rule.id or 0],
                  state="held")
        )  # fmt: skip
        await db.flush()
        await db.exec(delete(Grant))
        assert await rollups.holders(db, [server.id or 0]) == {}
