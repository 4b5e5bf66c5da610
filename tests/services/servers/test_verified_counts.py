"""The counts of verified members that triggers and the fold keep, compared with a count of the tables themselves."""

import random
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import date, timedelta

import pytest
from sqlalchemy import text
from sqlmodel import col, delete, select, update

from models import Event, Member, MemberChoice, Server, User, Wallet, now, transaction
from models.db.session import AsyncSession
from services.core.actors import Actor
from services.guilds import members
from services.privacy import erasure, retention
from services.servers import verified_counts
from tests.support.builders import a_member, a_server, address, snowflake
from tests.support.missing_triggers import each_missing

pytestmark = pytest.mark.usefixtures("database")
Counts = tuple[dict[int, int], int, dict[date, int]]
LONG_AGO = date(2000, 1, 1)
SEEDS = (1, 2, 3, 0)
"""Seeds of histories; at least one has to show that a trigger is missing, and mostly the first one does."""
SOONEST = {
    "verified_changed_member": 3, "verified_changed_user": 2, "verified_gone_member": 2, "verified_gone_proof": 3,
    "verified_gone_user": 0, "verified_gone_wallet": 2,
}  # fmt: skip
"""The seeds that show the lack of some triggers sooner; if one does not any more, the others are tried."""


async def kept(db: AsyncSession, servers: list[int]) -> Counts:
    """Return what the screens show: counts by server, the count over all of them, and proofs by day."""
    return (
        await verified_counts.by_server(db, servers),
        await verified_counts.people(db, servers),
        await verified_counts.proofs(db, servers, LONG_AGO),
    )


async def recounted(db: AsyncSession, servers: list[int]) -> Counts:
    """Return the same, counted from members, wallets, choices and the log."""
    places = (
        await db.execute(
            text(
                """
                SELECT DISTINCT m.server_id, m.discord_id FROM member m JOIN "user" u ON u.discord_id = m.discord_id
                JOIN wallet w ON w.user_id = u.id
                LEFT JOIN member_choice c ON c.user_id = u.id AND c.server_id = m.server_id
                WHERE m.server_id = ANY(CAST(:servers AS integer[])) AND m.left_at IS NULL AND NOT m.bot
                AND COALESCE(c.use_wallets, true)
                """
            ),
            {"servers": servers},
        )
    ).all()
    people = {str(who) for _, who in places}
    lines = (await db.exec(select(Event).where(Event.kind == "wallet.proved"))).all()
    return (
        dict(Counter(int(server_id) for server_id, _ in places)),
        len(people),
        dict(Counter(line.at.date() for line in lines if line.subject in people)),
    )


class Crowd:
    """Some people in a few servers, with random events made by the same writes that the product makes."""

    def __init__(self, db: AsyncSession, servers: list[int], people: list[str], chosen: random.Random) -> None:
        self.db, self.servers, self.people, self.chosen = db, servers, people, chosen

    def place(self) -> tuple[int, str]:
        return self.chosen.choice(self.servers), self.chosen.choice(self.people)

    async def user(self) -> User:
        who = self.chosen.choice(self.people)
        found = (await self.db.exec(select(User).where(User.discord_id == who))).first()
        if found is None:
            found = User(discord_id=who, username="somebody")
            self.db.add(found)
            await self.db.flush()
        return found

    async def join(self) -> None:
        server_id, who = self.place()
        there = await self.db.get(Member, (server_id, who))
        if there is None:
            self.db.add(Member(server_id=server_id, discord_id=who, name="somebody", bot=self.chosen.random() < 0.1))
        else:
            there.left_at = None
            self.db.add(there)
        await self.db.flush()

    async def leave(self) -> None:
        await members.left_many(self.db, [self.place()])

    async def become_a_bot(self) -> None:
        server_id, who = self.place()
        turn = update(Member).where(col(Member.server_id) == server_id, col(Member.discord_id) == who)
        await self.db.exec(turn.values(bot=~col(Member.bot)))

    async def vanish(self) -> None:
        server_id, who = self.place()
        await self.db.exec(delete(Member).where(col(Member.server_id) == server_id, col(Member.discord_id) == who))

    async def clear_away(self) -> None:
        await self.db.execute(text("UPDATE member SET left_at = now() - interval '1 year' WHERE left_at IS NOT NULL"))
        for step in retention.STEPS:
            await step.work(self.db)

    async def have_a_wallet(self) -> None:
        await self._wallet(await self.user())

    async def _wallet(self, user: User) -> None:
        self.db.add(Wallet(user_id=user.id or 0, family="evm", address=address(), method="opensea_bio"))
        await self.db.flush()

    async def have_a_line(self) -> None:
        who, at = self.chosen.choice(self.people), now() - timedelta(days=self.chosen.randint(0, 3))
        self.db.add(Event(kind="wallet.proved", subject=who, actor=who, at=at))
        await self.db.flush()

    async def move(self) -> None:
        wallet = (await self.db.exec(select(Wallet).order_by(col(Wallet.id)).limit(1))).first()
        if wallet is not None:
            wallet.user_id = (await self.user()).id or 0
            self.db.add(wallet)
            await self.db.flush()

    async def remove(self) -> None:
        await self.db.exec(delete(Wallet).where(col(Wallet.user_id) == (await self.user()).id))

    async def verified(self) -> tuple[int, int]:
        """Return the ids of a server and a user whose choice changes a count there, if there are any."""
        found = await self.db.exec(
            select(Member.server_id, col(User.id))
            .join(User, col(User.discord_id) == col(Member.discord_id))
            .where(col(User.discord_id).in_(self.people), col(Member.left_at).is_(None), col(Member.bot).is_(False))
            .where(select(Wallet.id).where(Wallet.user_id == User.id).exists())
            .order_by(col(Member.server_id), col(User.id))
        )
        rows = found.all() or [(self.chosen.choice(self.servers), (await self.user()).id)]
        server_id, user_id = self.chosen.choice(rows)
        return server_id, user_id or 0

    async def choose(self) -> None:
        server_id, user_id = await self.verified()
        choice = await self.db.get(MemberChoice, (server_id, user_id)) or MemberChoice(
            server_id=server_id, user_id=user_id
        )
        choice.use_wallets = not choice.use_wallets
        self.db.add(choice)
        await self.db.flush()

    async def decide_no_more(self) -> None:
        _, user_id = await self.verified()
        await self.db.exec(delete(MemberChoice).where(col(MemberChoice.user_id) == user_id))

    async def be_forgotten(self) -> None:
        user = await self.user()
        await erasure.forget(self.db, Actor(user.id or 0, user.discord_id, user.username))
        if self.chosen.random() < 0.7:  # and returns before the log is rewritten
            again = User(discord_id=user.discord_id, username="somebody")
            self.db.add(again)
            await self.db.flush()
            await self._wallet(again)

    async def be_renamed_in_the_log(self) -> None:
        await erasure.finish(self.db)

    async def lose_old_lines(self) -> None:
        await self.db.execute(text("DELETE FROM event WHERE at < now() - interval '2 days'"))

    async def become_another_account(self) -> None:
        user = await self.user()
        self.people.append(snowflake())
        await self.db.exec(update(User).where(col(User.id) == user.id).values(discord_id=self.people[-1]))

    async def something(self) -> None:
        often = [self.join, self.join, self.have_a_wallet, self.have_a_line]
        seldom = [
            self.leave, self.become_a_bot, self.vanish, self.clear_away, self.move, self.remove, self.choose,
            self.choose, self.decide_no_more, self.be_forgotten, self.be_renamed_in_the_log, self.lose_old_lines,
            self.become_another_account,
        ]  # fmt: skip
        await self.chosen.choice(self.chosen.choice([often, seldom]))()
        self.db.expire_all()


async def history(chosen: random.Random, steps: int, every: int = 1) -> AsyncGenerator[tuple[Counts, Counts]]:
    """Yield the kept counts and a recount after one step in `every`, inside the transaction and after it.

    Finally yield the kept counts and a recount for all servers.
    """
    people = [snowflake() for _ in range(5)]
    async with transaction() as db:
        servers = [(await a_server(db)).id or 0 for _ in range(3)]
    for step in range(steps):
        async with transaction() as db:
            await Crowd(db, servers, people, chosen).something()
            asked = sorted(chosen.sample(servers, chosen.randint(1, 3)))
            if shown := step % every == 0:
                right = await recounted(db, asked)
                yield await kept(db, asked), right  # also the changes of this same transaction
        if chosen.random() < 0.7:
            async with transaction() as db:
                await verified_counts.fold(db)
                if shown:
                    assert (await db.execute(text("SELECT count(*) FROM verified_stale"))).scalar_one() == 0
                    yield await kept(db, asked), await recounted(db, asked)
    async with transaction() as db:
        await verified_counts.fold(db)
        yield await kept(db, servers), await recounted(db, servers)


@pytest.mark.parametrize("seed", SEEDS)
async def test_what_is_kept_while_it_happens_is_what_the_tables_say(seed: int) -> None:
    verified = 0
    async for counted, right in history(random.Random(seed), 60):
        assert counted == right
        verified += right[1]
    assert verified
    async with transaction() as db:
        before = await tables(db)
        await verified_counts.rebuild(db)
        assert await tables(db) == before


async def test_a_missing_trigger_is_noticed() -> None:
    unnoticed = list[str]()
    async for trigger in each_missing("verified_"):
        for seed in sorted(SEEDS, key=lambda seed: seed != SOONEST.get(trigger)):
            async with aclosing(history(random.Random(seed), 60, every=4)) as steps:
                if await anext((True async for counted, right in steps if counted != right), False):
                    break
        else:
            unnoticed.append(trigger)
    assert not unnoticed


async def tables(db: AsyncSession) -> list[list[tuple[object, ...]]]:
    """Return everything that is kept, except counts that are 0."""
    return [
        sorted(map(tuple, (await db.execute(text(f"SELECT * FROM {name} WHERE {condition}"))).all()))
        for name, condition in (("verified_person", "true"), ("verified_count", "total <> 0"), ("audience", "true"))
    ]


async def test_a_joining_and_a_proof_at_the_same_time_are_counted_whichever_ends_first() -> None:
    async with transaction() as db:
        server = await a_server(db)
        user = User(discord_id=snowflake(), username="somebody")
        db.add(user)
    async with transaction() as joining:
        joining.add(Member(server_id=server.id or 0, discord_id=user.discord_id, name="somebody"))
        await joining.flush()
        async with transaction() as proving:
            proving.add(Wallet(user_id=user.id or 0, family="evm", address=address(), method="opensea_bio"))
        async with transaction() as clock:
            assert await verified_counts.fold(clock)
            assert await verified_counts.people(clock, [server.id or 0]) == 0
    async with transaction() as db:
        assert await verified_counts.people(db, [server.id or 0]) == 1
        assert await verified_counts.fold(db)
        assert await verified_counts.by_server(db, [server.id or 0]) == {server.id: 1}


async def test_a_deleted_server_leaves_nobody_verified_in_it() -> None:
    async with transaction() as db:
        gone, kept_on = await a_server(db), await a_server(db)
        member = await a_member(db, gone, wallet=address())
        db.add(Member(server_id=kept_on.id or 0, discord_id=member.discord_id, name="somebody"))
        await db.flush()
        await verified_counts.fold(db)
        ids = [gone.id or 0, kept_on.id or 0]
        assert (await verified_counts.by_server(db, ids), await verified_counts.people(db, ids)) == (
            {ids[0]: 1, ids[1]: 1},
            1,
        )
        await db.exec(delete(Server).where(col(Server.id) == gone.id))
        assert await verified_counts.by_server(db, ids) == {ids[1]: 1}
        await verified_counts.fold(db)
        assert await verified_counts.by_server(db, ids) == {ids[1]: 1}


async def test_changes_in_another_server_are_not_read_for_this_one() -> None:
    async with transaction() as db:
        mine, crowded = await a_server(db), await a_server(db)
        await a_member(db, mine, wallet=address())
        for _ in range(3):
            await a_member(db, crowded, wallet=address())
        await verified_counts.fold(db)
        await a_member(db, mine, wallet=address())
        stranger = await a_member(db, crowded, wallet=address())
        # Reading this person would fail from here on.
        await db.execute(text("ALTER FUNCTION verified_in(text) RENAME TO verified_in_before"))
        await db.execute(
            text(
                f"""
                CREATE FUNCTION verified_in(who text) RETURNS integer[] LANGUAGE plpgsql STABLE AS $$ BEGIN
                    ASSERT who <> '{stranger.discord_id}', 'somebody of another server was read';
                    RETURN verified_in_before(who);
                END $$
                """
            )
        )
        ids = [mine.id or 0]
        assert await verified_counts.by_server(db, ids) == {mine.id: 2}
        assert await verified_counts.people(db, ids) == 2
        assert await verified_counts.proofs(db, ids, LONG_AGO) == {}


async def test_many_changes_are_counted_before_they_are_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    size = text("SELECT reltuples FROM pg_class WHERE relname = 'verified_stale'")
    monkeypatch.setattr(verified_counts, "MANY", 30)
    async with transaction() as db:
        server = await a_server(db)
        for _ in range(20):
            await a_member(db, server, wallet=address())
        assert await verified_counts.fold(db) == 40
        # The planner then expects as many rows as there are.
        assert (await db.execute(size)).scalar_one() == 40
        assert await verified_counts.by_server(db, [server.id or 0]) == {server.id: 20}
        await a_member(db, server, wallet=address())
        await verified_counts.fold(db)
        assert (await db.execute(size)).scalar_one() == 40
