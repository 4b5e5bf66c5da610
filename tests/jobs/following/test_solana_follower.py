"""Following Solana: members' holdings are read again and again, so a sale is noticed without a sweep."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from sqlalchemy import text

from gateways import Gateways, gateways
from jobs.following import solana_follower
from jobs.following.follower_turns import FollowerTurns
from jobs.following.solana_follower import SolanaFollower
from models import Cursor, now, transaction
from models.db.session import AsyncSession
from services.health import monitoring, provider_health
from services.health.views import GOOD, WARNING
from services.rules.expression import Requirement
from services.runtime.task_cancellation import stop
from services.triggers import chain_cursor, solana_poller
from services.triggers.solana_poller import SOLANA, AssetQuestion, Poll, Polled, joined
from services.triggers.transfer_poller import UnreadableTransfers
from tests.jobs.conftest import Engine
from tests.jobs.deciding.test_solana import Otters, a_coin, coins, otters, soon_settled
from tests.jobs.town import Town, until
from tests.jobs.watching import given, taken

__all__ = ["otters", "soon_settled"]


@pytest.fixture
async def follow(town: Town, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[[], None]]:
    """A function that starts a follower, which asks without a pause until the test ends."""
    monkeypatch.setenv("FOLLOW_SECONDS", "0.1")
    monkeypatch.setenv("SOLANA_FOLLOW_REQUESTS", "100000")
    solana_follower.settings.cache_clear()
    running: list[asyncio.Task[None]] = []
    yield lambda: running.append(asyncio.create_task(SolanaFollower(FollowerTurns("one")).run()))
    await stop(*running)


async def asked_once_more(town: Town) -> None:
    """Wait until every question has been answered once more since now."""
    slot = (await gateways().chains.head(SOLANA)).block

    async def answered() -> bool:
        async with transaction() as db:
            row = await db.get(Cursor, SOLANA)
        return row is not None and row.block > slot and await nobody_is_due()

    await until(answered)


async def nobody_is_due() -> bool:
    async with transaction() as db:
        return not (await db.execute(text("SELECT count(*) FROM due"))).scalar_one()


async def followed(otters: Otters) -> SolanaFollower:
    """Return a follower that has read once for a rule on otters and carol's wallet."""
    await otters.buys("dave")
    await otters.rule(Requirement("basic", SOLANA, otters.contract))
    await otters.proves("carol")
    one = SolanaFollower(FollowerTurns("one"))
    assert await one.once()
    return one


async def test_a_purchase_and_a_sale_on_solana_change_the_roles_without_a_sweep(
    town: Town, otters: Otters, engine: Engine, follow: Callable[[], None]
) -> None:
    await otters.buys("dave")
    await otters.rule(Requirement("basic", SOLANA, otters.contract))
    await otters.rule(Requirement("any_nft", SOLANA, "any"), "Collector")
    async with engine():
        await otters.proves("carol")
        follow()
        await asked_once_more(town)
        token = await otters.buys("carol")
        for role in ("Holder", "Collector"):
            await given(town, "carol", role)
        await asked_once_more(town)
        await otters.sells(token)
        for role in ("Holder", "Collector"):
            await taken(town, "carol", role)


async def test_what_happened_while_nobody_read_is_found_when_somebody_reads_again(
    town: Town, otters: Otters, engine: Engine, follow: Callable[[], None]
) -> None:
    await otters.buys("dave")
    token = await otters.buys("carol")
    await otters.rule(Requirement("basic", SOLANA, otters.contract))
    async with engine():
        await otters.proves("carol")
        await given(town, "carol")
        await otters.sells(token)
        follow()
        await taken(town, "carol")


async def test_no_more_is_asked_than_the_share_of_the_rate_allows(
    town: Town, otters: Otters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOLANA_FOLLOW_REQUESTS", "1")
    solana_follower.settings.cache_clear()
    await otters.buys("dave")
    await otters.rule(Requirement("basic", SOLANA, otters.contract))
    await otters.proves("carol")
    one, since = SolanaFollower(FollowerTurns("one")), await town.mark()
    assert await one.once()
    asked = len(await town.requests(since, SOLANA))
    assert asked > 0
    for _ in range(10):
        assert await one.once()
    assert len(await town.requests(since, SOLANA)) == asked


async def test_members_are_asked_for_together_where_a_collection_is_read_whole(
    town: Town, otters: Otters, monkeypatch: pytest.MonkeyPatch
) -> None:
    await otters.rule(Requirement("basic", SOLANA, otters.contract))
    groups = [AssetQuestion(otters.contract, tuple(f"{group}-{one}" for one in range(200))) for group in range(3)]
    one, sent, asked = SolanaFollower(FollowerTurns("one")), 0, list[AssetQuestion]()

    async def questions(_: AsyncSession) -> list[AssetQuestion]:
        return groups

    async def ask(_: Poll, __: Gateways, question: AssetQuestion) -> Polled:
        nonlocal sent
        sent += 16
        asked.append(question)
        if len(asked) == 3:
            raise UnreadableTransfers("no answer")
        return Polled(len(asked), (), (), {})

    monkeypatch.setattr(solana_poller, "questions", questions)
    monkeypatch.setattr(Poll, "ask", ask)
    monkeypatch.setattr(gateways().mints, "requests", lambda: sent)
    for turn in range(4):
        one._rests_until = 0.0
        if turn == 2:
            with pytest.raises(UnreadableTransfers):
                await one.once()
        else:
            assert await one.once()
    assert asked == [groups[0], joined(groups[1:]), joined(groups), groups[0]]
    async with transaction() as db:
        row = await db.get(Cursor, SOLANA)
    assert row is not None
    assert (row.block, row.head) == (2, 4), "two groups were last read at slot 2"


@pytest.mark.parametrize("fault", [None, "no answer"])
async def test_a_follower_whose_share_is_used_up_is_at_work_and_one_without_answers_is_not(
    town: Town, otters: Otters, monkeypatch: pytest.MonkeyPatch, fault: str | None
) -> None:
    monkeypatch.setenv("SOLANA_FOLLOW_REQUESTS", "1")
    solana_follower.settings.cache_clear()
    one = await followed(otters)
    async with transaction() as db:
        await db.execute(
            text("UPDATE cursor SET updated_at = now() - interval '1 hour', fault = :fault WHERE chain = :chain"),
            {"fault": fault, "chain": SOLANA},
        )
    since = await town.mark()
    assert await one.once()
    assert await town.requests(since, SOLANA) == []
    async with transaction() as db:
        (shown,) = provider_health.lag(await chain_cursor.views(db), now())
    assert (shown.chain, shown.state) == (SOLANA, GOOD if fault is None else WARNING)


@pytest.mark.parametrize("fault", [None, "no answer"])
async def test_solana_is_not_missed_nor_remembered_while_no_member_has_a_wallet_there(
    town: Town, otters: Otters, fault: str | None
) -> None:
    one = await followed(otters)
    assert one._poll.lists
    async with transaction() as db:
        await db.execute(text("DELETE FROM wallet"))
        await db.execute(
            text("UPDATE cursor SET updated_at = now() - interval '1 day', fault = :fault"), {"fault": fault}
        )
    one._rests_until = 0.0
    assert await one.once()
    assert not one._poll.lists
    async with transaction() as db:
        assert await monitoring.lag(db, now()) == ()


async def test_a_failing_endpoint_is_reported_and_changes_nothing(town: Town, otters: Otters) -> None:
    await otters.buys("dave")
    await otters.rule(Requirement("basic", SOLANA, otters.contract))
    await otters.proves("carol")
    async with transaction() as db:
        await db.execute(text("DELETE FROM due"))
    await town.break_("down", SOLANA)
    running = asyncio.create_task(SolanaFollower(FollowerTurns("one")).run())

    async def told() -> bool:
        async with transaction() as db:
            row = await db.get(Cursor, SOLANA)
        return row is not None and bool(row.fault)

    await until(told)
    await stop(running)
    assert await nobody_is_due()


async def test_one_process_reads_at_a_time(town: Town, otters: Otters) -> None:
    await otters.rule(Requirement("basic", SOLANA, otters.contract))
    first, second = SolanaFollower(FollowerTurns("one")), SolanaFollower(FollowerTurns("other"))
    assert await first.once()
    assert not await second.once()


async def test_a_coin_on_solana_is_followed_by_its_amounts(
    town: Town, engine: Engine, follow: Callable[[], None]
) -> None:
    coin = await a_coin(town, "SPL")
    await coin.rule(coins(coin.contract, "100"))
    async with engine():
        await coin.proves("carol")
        await given(town)
        follow()
        await asked_once_more(town)
        await coin.act("transfer", amount="1", to=coin.wallet("dave"), **{"from": coin.wallet("carol")})
        await taken(town)
