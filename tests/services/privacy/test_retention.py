"""Which data expires, and when."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy import text
from sqlmodel import col, select

from jobs import scheduler
from models import (
    Alert,
    Challenge,
    Collection,
    Delegation,
    DelegationRead,
    Event,
    Member,
    Notice,
    Observation,
    PayoutListing,
    Schedule,
    Session,
    Sighting,
    SignIn,
    Surveyed,
    Tally,
    Token,
    TokenTrail,
    User,
    Wallet,
    now,
    transaction,
)
from models.db.session import AsyncSession
from services.accounts import sessions
from services.core.actors import Actor
from services.guilds.gateway import interaction_claims
from services.holdings.last_known import READINGS
from services.privacy import retention
from services.rules.expression import Requirement, to_document
from services.runtime import schedules
from services.wallets import wallets
from settings import settings
from tests.support.builders import a_member, a_rule, a_server, address
from tests.support.statements import Statements, waits_for_a_lock


async def test_members_who_left_are_forgotten_after_thirty_days(database: str) -> None:
    async with transaction() as db:
        server = await a_server(db)
        here, lately, long_ago = [await a_member(db, server) for _ in range(3)]
        lately.left_at, long_ago.left_at = now() - timedelta(days=29), now() - timedelta(days=31)
        db.add_all([lately, long_ago])
    async with transaction() as db:
        await retention.housekeep(db)
    async with transaction() as db:
        kept = set((await db.exec(select(Member.discord_id))).all())
    assert kept == {here.discord_id, lately.discord_id}


async def test_delegations_are_kept_as_long_as_the_wallet_is_somebodys(database: str) -> None:
    async with transaction() as db:
        kept, gone = address(), address()
        await a_member(db, await a_server(db), wallet=kept)
        for one in (kept, gone):
            db.add(Delegation(chain="base", delegate=one, vault=address(), contract="", token_id=""))
            db.add(DelegationRead(chain="base", delegate=one, block=7, endpoint=0))
    async with transaction() as db:
        await retention.housekeep(db)
    async with transaction() as db:
        assert [one.delegate for one in (await db.exec(select(Delegation))).all()] == [kept]
        assert [one.delegate for one in (await db.exec(select(DelegationRead))).all()] == [kept]


async def test_readings_are_kept_as_long_as_the_wallet_or_the_vault_is_somebodys(database: str) -> None:
    mine, vault, removed, ended = (address() for _ in range(4))
    async with transaction() as db:
        server = await a_server(db)
        member = await a_member(db, server, wallet=mine)
        user = (await db.exec(select(User).where(User.discord_id == member.discord_id))).one()
        db.add(Wallet(user_id=user.id or 0, family="evm", address=removed, method="opensea_bio"))
        db.add(Delegation(chain="base", delegate=mine, vault=vault, contract="", token_id=""))
        db.add(Delegation(chain="base", delegate=removed, vault=ended, contract="", token_id=""))
        for one in (mine, vault, removed, ended):
            db.add(Surveyed(chain="base", address=one, server_id=server.id or 0, survey_id=1))
            db.add(Observation(chain="base", contract="0x1", address=one, amount=Decimal(3), block=9, source="a node"))
            db.add(Tally(chain="base", contract="0x1", address=one, scope="s", amount=Decimal(1), block=9, source="x"))
            db.add(TokenTrail(chain="base", contract="0x1", address=one, ids=["1"]))
        await db.flush()
        wallet = (await db.exec(select(Wallet).where(Wallet.address == removed))).one()
        actor = Actor(user.id or 0, user.discord_id, user.username)
        await wallets.remove(db, actor, wallet.id or 0)
    async with transaction() as db:
        await retention.housekeep(db)
    async with transaction() as db:
        for table in READINGS:
            kept = await db.execute(text(f"SELECT address FROM {table} ORDER BY address"))
            assert (table, [one for (one,) in kept.all()]) == (table, sorted([mine, vault]))


async def test_of_collections_that_no_rule_names_the_newest_are_kept(database: str) -> None:
    old, named, read, delegated, newest, mine = (address() for _ in range(6))
    async with transaction() as db:
        server = await a_server(db)
        await a_member(db, server, wallet=mine)
        rule = await a_rule(db, server, "7001")
        rule.expression = {"any": [rule.expression, {"not": to_document(Requirement("basic", "base", named))}]}
        db.add(rule)
        for number, contract in enumerate((old, named, read, delegated), 1):
            db.add(Collection(id=number, chain="base", contract=contract, name="x"))
        # Numbers are used up by rows that were there already, too.
        db.add(Collection(id=2 * retention.COLLECTIONS_KEPT, chain="base", contract=newest, name="x"))
        await db.flush()
        db.add(Token(collection_id=3, token_id="1"))
        db.add(Delegation(chain="base", delegate=mine, vault=address(), contract=delegated, token_id=""))

    async def kept() -> Sequence[str]:
        async with transaction() as db:
            await retention.housekeep(db)
        async with transaction() as db:
            found = select(Collection.contract).where(Collection.name == "x").order_by(col(Collection.id))
            return (await db.exec(found)).all()

    assert await kept() == [old, named, read, delegated, newest], "there are not many"
    async with transaction() as db:
        await db.execute(
            "INSERT INTO collection (id, chain, contract, name, source, updated_at) "
            "SELECT n + 4, 'base', CAST(n AS text), 'y', '', now() FROM generate_series(1, :more) n",
            {"more": retention.COLLECTIONS_KEPT - 1},
        )
    assert await kept() == [named, read, delegated, newest]


async def test_claims_on_interactions_are_kept_while_discord_may_send_them_again(database: str) -> None:
    async with transaction() as db:
        assert await interaction_claims.claim(db, "old")
        assert await interaction_claims.claim(db, "new")
        await db.execute(text("UPDATE interaction_claim SET at = at - interval '61 minutes' WHERE id = 'old'"))
    async with transaction() as db:
        await retention.housekeep(db)
    async with transaction() as db:
        assert await interaction_claims.claim(db, "old")
        assert not await interaction_claims.claim(db, "new")


async def lines(*ages_in_days: float) -> None:
    """Store lines of the log with these ages, each named after its age."""
    async with transaction() as db:
        for age in ages_in_days:
            db.add(Event(kind=f"age.{age:g}", at=now() - timedelta(days=age)))
            await db.flush()


async def kinds() -> list[str]:
    async with transaction() as db:
        return list((await db.exec(select(Event.kind).order_by(col(Event.id)))).all())


@pytest.mark.parametrize(("days", "left"), [(90, ["age.89", "age.0"]), (100, ["age.91", "age.89", "age.0"]), (0, None)])
async def test_the_log_is_kept_for_as_many_days_as_set(database: str, days: int, left: list[str] | None) -> None:
    await lines(400, 101, 91, 89, 0)
    before = await kinds()
    async with transaction() as db:
        gone = await retention.clear_log(db, days)
    assert await kinds() == (before if left is None else left)
    assert gone == len(before) - len(await kinds())


async def test_a_long_log_goes_in_portions_the_oldest_first(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "AT_ONCE", 2)
    await lines(400, 399, 398, 1)
    async with transaction() as db:
        assert await retention.clear_log(db, 30) == 2
    assert await kinds() == ["age.398", "age.1"]
    async with transaction() as db:
        assert await retention.clear_log(db, 30) == 1
    assert await kinds() == ["age.1"]


@pytest.fixture
def thirty_days(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A deployment that keeps the log for thirty days."""
    monkeypatch.setenv("LOG_DAYS", "30")
    settings.cache_clear()
    yield
    settings.cache_clear()


async def test_the_scheduler_deletes_once_an_hour_and_at_once_where_more_is_as_old(
    database: str, thirty_days: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "AT_ONCE", 2)
    await lines(400, 399, 398, 1)
    async with transaction() as db:
        left = await a_member(db, await a_server(db))
        left.left_at = now() - timedelta(days=31)
        db.add(left)
        await schedules.bring_forward(db, retention.SCHEDULE)
    (job,) = (one for one in scheduler.all_jobs() if one.name == retention.SCHEDULE)
    await scheduler.prepare([job])
    for kept in (["age.398", "age.1"], ["age.1"], ["age.1"]):
        await scheduler.take_turn(job)
        assert await kinds() == kept
    async with transaction() as db:
        assert (await db.exec(select(Member))).all() == []
        hour = (await db.get_one(Schedule, retention.SCHEDULE)).next_at - now()
    assert timedelta(minutes=59) < hour <= scheduler.HOUSEKEEPING_EVERY
    await lines(500)
    await scheduler.take_turn(job)
    assert await kinds() == ["age.1", "age.500"], "not before its hour"


@pytest.mark.parametrize(("days", "left"), [(365, ["lately"]), (0, ["lately", "long ago"])])
async def test_notes_of_downloaded_payout_addresses_are_kept_as_long_as_the_log(
    database: str, days: int, left: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOG_DAYS", str(days))
    settings.cache_clear()
    async with transaction() as db:
        server = await a_server(db)
        user = User(discord_id="1", username="x")
        db.add(user)
        await db.flush()
        for actor, age in (("lately", 364), ("long ago", 366)):
            db.add(
                PayoutListing(
                    server_id=server.id or 0, user_id=user.id or 0, actor=actor, at=now() - timedelta(days=age)
                )
            )
    async with transaction() as db:
        await retention.housekeep(db)
    async with transaction() as db:
        assert (await db.exec(select(PayoutListing.actor).order_by(col(PayoutListing.id)))).all() == left
    settings.cache_clear()


async def housekeeping_is_due() -> scheduler.ScheduledJob:
    """Make the job due, and return it."""
    async with transaction() as db:
        await schedules.bring_forward(db, retention.SCHEDULE)
    (job,) = (one for one in scheduler.all_jobs() if one.name == retention.SCHEDULE)
    return job


async def test_a_step_that_fails_stops_no_other_and_housekeeping_stays_due(database: str) -> None:
    async with transaction() as db:
        left = await a_member(db, await a_server(db), wallet=address())
        left.left_at = now() - timedelta(days=31)
        user = (await db.exec(select(User))).one()
        db.add_all(
            [
                left,
                Challenge(user_id=user.id or 0, family="evm", address=address(), code="c", amount_wei=Decimal(1),
                          expires_at=now() - timedelta(days=8)),
            ]
        )  # fmt: skip
        for statement in (
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$",
            "CREATE TRIGGER refuse BEFORE DELETE ON challenge EXECUTE FUNCTION refuse()",
        ):
            await db.execute(text(statement))
    job = await housekeeping_is_due()
    with pytest.raises(retention.StepsFailed, match=r"^challenge$"):
        await scheduler.take_turn(job)
    async with transaction() as db:
        assert (await db.exec(select(Member))).all() == []
        await db.execute(text("DROP FUNCTION refuse() CASCADE"))
    assert await scheduler.take_turn(job), "it is still due"
    async with transaction() as db:
        assert (await db.exec(select(Challenge))).all() == []
    assert not await scheduler.take_turn(job)


async def test_of_two_processes_one_does_the_housekeeping(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    began, go_on, times = asyncio.Event(), asyncio.Event(), list[int]()

    async def work(_: AsyncSession) -> None:
        times.append(1)
        began.set()
        await go_on.wait()

    monkeypatch.setattr(retention, "STEPS", (retention.Step("slow", work), *retention.STEPS))
    job = await housekeeping_is_due()
    turns = [asyncio.create_task(scheduler.take_turn(job))]
    await began.wait()
    turns.append(asyncio.create_task(scheduler.take_turn(job)))
    async with asyncio.timeout(60):
        while not await waits_for_a_lock():
            assert not turns[1].done(), turns[1]
            await asyncio.sleep(0.01)
    go_on.set()
    assert await asyncio.gather(*turns) == [True, False]
    assert times == [1]


async def test_many_expired_rows_are_deleted_in_portions(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "AT_ONCE", 2)
    async with transaction() as db:
        server = await a_server(db)
        for _ in range(5):
            left = await a_member(db, server)
            left.left_at = now() - timedelta(days=31)
            db.add(left)
    with Statements() as statements:
        async with transaction() as db:
            await retention.housekeep(db)
    more = statements.count
    async with transaction() as db:
        assert (await db.exec(select(Member))).all() == []
    with Statements() as statements:
        async with transaction() as db:
            await retention.housekeep(db)
    assert more - statements.count == 2


async def test_what_has_ended_goes(database: str) -> None:
    moment = now()
    days = {number: moment - timedelta(days=number) for number in (1, 3, 8, 31, 91, 400)}
    async with transaction() as db:
        server = await a_server(db)
        user = User(discord_id="1", username="x")
        db.add(user)
        await db.flush()
        user_id, server_id = user.id or 0, server.id or 0
        await sessions.open_session(db, user_id, "ended")
        await db.execute(text("UPDATE session SET expires_at = :ended"), {"ended": days[1]})
        await sessions.open_session(db, user_id, "lives")
        for address, ended in (("0xa", days[1]), ("0xb", days[8])):
            db.add(
                Challenge(
                    user_id=user_id, family="evm", address=address, code=address, amount_wei=Decimal(1),
                    expires_at=ended,
                )
            )  # fmt: skip
        for name, until in ((b"a", days[1]), (b"b", moment + timedelta(minutes=1))):
            db.add(
                SignIn(
                    state_hash=name, cookie_hash=b"", verifier="", return_path="/", purpose="sign_in", expires_at=until
                )
            )
        for address, seen in (("0xa", days[1]), ("0xb", days[3])):
            db.add(Sighting(chain="base", address=address, block=1, seen_at=seen))
        for kind, told in (("told lately", days[1]), ("told long ago", days[31]), ("never told", None)):
            db.add(Notice(discord_id="1", kind=kind, told_at=told, created_at=days[91]))
        db.add(Notice(discord_id="1", kind="never came by", created_at=days[400]))
        for key, ended in (("open", None), ("ended", days[91]), ("ended long ago", days[400])):
            db.add(Alert(server_id=server_id, key=key, title="", text="", mend="", began_at=days[400], ended_at=ended))
    async with transaction() as db:
        await retention.housekeep(db)
    async with transaction() as db:
        assert (await db.exec(select(Challenge.address))).all() == ["0xa"]
        assert (await db.exec(select(Session.user_agent))).all() == ["lives"]
        assert (await db.exec(select(SignIn.state_hash))).all() == [b"b"]
        assert (await db.exec(select(Sighting.address))).all() == ["0xa"]
        assert set((await db.exec(select(Notice.kind))).all()) == {"told lately", "never told"}
        assert set((await db.exec(select(Alert.key))).all()) == {"open", "ended"}
