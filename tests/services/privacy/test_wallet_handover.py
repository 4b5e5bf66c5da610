"""Moving wallets to another Discord account of the same person: both accounts agree, and everything moves at once."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text
from sqlmodel import col, select, update

from models import Due, Event, Handover, MemberChoice, Notice, Server, User, Wallet, now, transaction
from models.db.session import AsyncSession
from services.core import queue
from services.core.actors import Actor
from services.core.errors import FieldRefused, TooMany, WalletNotFound
from services.privacy import erasure, wallet_handover
from services.runtime import rate_limits
from services.wallets import wallets
from settings import settings
from tests.support.builders import a_member, a_server, address


@pytest.fixture(autouse=True)
async def no_tries_yet() -> None:
    await rate_limits.forget()


@dataclass(frozen=True)
class Two:
    """Two accounts in one server: the old one with two wallets, the new one with none."""

    server: Server
    old: Actor
    new: Actor
    wallets: tuple[str, str]


async def an_actor(db: AsyncSession, discord_id: str) -> Actor:
    user = (await db.exec(select(User).where(User.discord_id == discord_id))).one()
    return Actor(user_id=user.id or 0, discord_id=user.discord_id, username=user.username)


async def two_accounts(db: AsyncSession) -> Two:
    server, wallets = await a_server(db), (address(), address())
    one, other = await a_member(db, server, wallet=wallets[0]), await a_member(db, server, wallet=address())
    old, new = await an_actor(db, one.discord_id), await an_actor(db, other.discord_id)
    for row in (await db.exec(select(Wallet).where(Wallet.user_id == new.user_id))).all():
        await db.delete(row)
    db.add(Wallet(user_id=old.user_id, family="evm", address=wallets[1], method="transaction"))
    await db.flush()
    return Two(server, old, new, wallets)


async def of(db: AsyncSession, actor: Actor) -> list[str]:
    rows = await db.exec(select(Wallet.address).where(Wallet.user_id == actor.user_id).order_by(col(Wallet.id)))
    return list(rows.all())


async def choice(db: AsyncSession, two: Two, actor: Actor) -> tuple[bool, bool, int | None] | None:
    row = await db.get(MemberChoice, (two.server.id, actor.user_id), populate_existing=True)
    return (row.use_wallets, row.share_wallets, row.payout_wallet_id) if row else None


async def test_both_accounts_say_so_and_wallets_choices_and_payouts_move_at_once(database: str) -> None:
    async with transaction() as db:
        two = await two_accounts(db)
        payout = (await db.exec(select(Wallet.id).where(Wallet.address == two.wallets[1]))).one()
        db.add(
            MemberChoice(
                server_id=two.server.id or 0, user_id=two.old.user_id, share_wallets=True, payout_wallet_id=payout
            )
        )
        made = await wallet_handover.offer(db, two.old)
        assert (made.wallets, made.code.count("-")) == (2, 2)
        stored = (await db.exec(select(Handover))).one()
        assert made.code.replace("-", "").encode() not in stored.code_hash
    async with transaction() as db:
        seen = await wallet_handover.preview(db, two.new, f" {made.code.upper()} ")
        assert (seen.account, set(seen.wallets), seen.moved) == (two.old.username, set(two.wallets), False)
        with pytest.raises(FieldRefused, match="You made this code in this account"):
            await wallet_handover.take(db, two.old, made.code)
    async with transaction() as db:
        assert (await wallet_handover.take(db, two.new, made.code)).moved
    async with transaction() as db:
        assert (await of(db, two.old), set(await of(db, two.new))) == ([], set(two.wallets))
        assert await choice(db, two, two.new) == (True, True, payout)
        assert await choice(db, two, two.old) == (True, True, None)
        due = {one.key.partition(":")[2]: one.due_at for one in (await db.exec(select(Due))).all()}
        assert due[two.old.discord_id] - due[two.new.discord_id] == wallet_handover.LATER, "the new account comes first"
        notices = await db.exec(select(Notice.kind).where(Notice.discord_id == two.old.discord_id))
        assert notices.all() == ["wallet.handed_over"]
        lines = (await db.exec(select(Event).where(Event.server_id == two.server.id))).all()
        assert {(one.kind, one.actor, one.subject) for one in lines} == {
            ("member.handed_over", who, who) for who in (two.old.discord_id, two.new.discord_id)
        }
        for line in lines:
            assert not {*two.wallets, two.old.discord_id, two.new.discord_id} & set(map(str, line.data.values()))
        with pytest.raises(FieldRefused, match="not valid"):
            await wallet_handover.take(db, two.new, made.code)


async def test_accounts_that_hand_a_wallet_to_each_other_again_and_again_do_not_all_keep_its_roles(
    database: str,
) -> None:
    async with transaction() as db:
        two = await two_accounts(db)
    delays = list[timedelta]()
    for giver, taker in ((two.old, two.new), (two.new, two.old)) * 2:
        async with transaction() as db:
            await wallet_handover.take(db, taker, (await wallet_handover.offer(db, giver)).code)
        async with transaction() as db:
            due = {one.key.partition(":")[2]: one.due_at for one in (await db.exec(select(Due))).all()}
            delays.append(due[giver.discord_id] - due[taker.discord_id])
            await db.execute(text("DELETE FROM due"))
    assert delays == [wallet_handover.LATER] * 2 + [timedelta()] * 2
    async with transaction() as db:
        await db.execute(text("UPDATE notice SET created_at = now() - interval '1 hour'"))
        await wallet_handover.take(db, two.new, (await wallet_handover.offer(db, two.old)).code)
        due = {one.key.partition(":")[2]: one.due_at for one in (await db.exec(select(Due))).all()}
    assert due[two.old.discord_id] - due[two.new.discord_id] == wallet_handover.LATER


async def test_one_wallet_moves_back_the_same_way_and_the_stricter_choice_counts(database: str) -> None:
    async with transaction() as db:
        two = await two_accounts(db)
        (_first, second) = two.wallets
        other = address()
        db.add(Wallet(user_id=two.new.user_id, family="evm", address=other, method="transaction"))
        for user_id, shares in ((two.old.user_id, False), (two.new.user_id, True)):
            db.add(MemberChoice(server_id=two.server.id or 0, user_id=user_id, share_wallets=shares))
        await db.flush()
        wallet_id = (await db.exec(select(Wallet.id).where(Wallet.address == second))).one()
        made = await wallet_handover.offer(db, two.old, wallet_id)
        await wallet_handover.take(db, two.new, made.code)
        assert (await of(db, two.old), set(await of(db, two.new))) == ([two.wallets[0]], {second, other})
        assert await choice(db, two, two.new) == (True, False, None)
        back = await wallet_handover.offer(db, two.new, wallet_id)
        await wallet_handover.take(db, two.old, back.code)
        assert (set(await of(db, two.old)), await of(db, two.new)) == (set(two.wallets), [other])


async def test_an_account_without_a_wallet_that_chose_not_to_share_goes_on_not_to(database: str) -> None:
    async with transaction() as db:
        two = await two_accounts(db)
        for user_id, shares in ((two.old.user_id, True), (two.new.user_id, False)):
            db.add(MemberChoice(server_id=two.server.id or 0, user_id=user_id, share_wallets=shares))
        await db.flush()
        await wallet_handover.take(db, two.new, (await wallet_handover.offer(db, two.old)).code)
        assert await choice(db, two, two.new) == (True, False, None)


async def test_a_code_ends_with_its_time_a_newer_one_or_its_withdrawal(database: str) -> None:
    async with transaction() as db:
        two = await two_accounts(db)
        first = await wallet_handover.offer(db, two.old)
        second = await wallet_handover.offer(db, two.old)
        with pytest.raises(FieldRefused):
            await wallet_handover.preview(db, two.new, first.code)
        assert len((await wallet_handover.preview(db, two.new, second.code)).wallets) == 2
        await db.exec(update(Handover).values(expires_at=now() - timedelta(seconds=1)))
        with pytest.raises(FieldRefused):
            await wallet_handover.preview(db, two.new, second.code)
        third = await wallet_handover.offer(db, two.old)
        await wallet_handover.withdraw(db, two.old)
        for odd in (third.code, "", "x" * 4_000, "----"):
            with pytest.raises(FieldRefused, match="not valid"):
                await wallet_handover.preview(db, two.new, odd)
        with pytest.raises(WalletNotFound):
            await wallet_handover.offer(db, two.new)


async def test_tries_are_bounded_and_so_are_the_wallets_of_a_person(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with transaction() as db:
        two = await two_accounts(db)
        made = await wallet_handover.offer(db, two.old)
        monkeypatch.setattr(
            wallet_handover, "settings", lambda: settings().model_copy(update={"wallets_per_person": 1})
        )
        with pytest.raises(FieldRefused, match="at most 1"):
            await wallet_handover.take(db, two.new, made.code)
        assert await of(db, two.new) == []
        guesser = replace(two.new, user_id=two.new.user_id + 1_000_000)
        for _ in range(rate_limits.HANDOVERS.per_minute):
            with pytest.raises(FieldRefused):
                await wallet_handover.preview(db, guesser, "2222-2222-2222")
        with pytest.raises(TooMany):
            await wallet_handover.preview(db, guesser, made.code)


async def test_a_wallet_that_is_removed_during_its_handover_stays_with_the_new_account(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with transaction() as db:
        two = await two_accounts(db)
        mine = (await db.exec(select(Wallet.id).where(Wallet.address == two.wallets[0]))).one()
        made = await wallet_handover.offer(db, two.old)
    mark = queue.mark_people

    async def after_the_handover(*given: Any, **named: Any) -> None:
        monkeypatch.setattr(queue, "mark_people", mark)
        async with transaction() as other:
            await wallet_handover.take(other, two.new, made.code)
        await mark(*given, **named)

    monkeypatch.setattr(queue, "mark_people", after_the_handover)
    with pytest.raises(WalletNotFound):
        async with transaction() as db:
            await wallets.remove(db, two.old, mine or 0)
    async with transaction() as db:
        assert set(await of(db, two.new)) == set(two.wallets)


@pytest.mark.parametrize("alone", [True, False], ids=["of this wallet", "of all"])
async def test_a_handover_during_a_removal_moves_nothing_and_says_that_the_code_does_not_count(
    database: str, alone: bool
) -> None:
    async with transaction() as db:
        two = await two_accounts(db)
        removed = (await db.exec(select(Wallet.id).where(Wallet.address == two.wallets[0]))).one()
        code = (await wallet_handover.offer(db, two.old, removed if alone else None)).code

    async def take() -> None:
        async with transaction() as db:
            await wallet_handover.take(db, two.new, code)

    async with transaction() as db:
        await wallets.remove(db, two.old, removed or 0)
        await db.flush()
        taking = asyncio.create_task(take())
        async with asyncio.timeout(60):
            while not (await db.execute(text("SELECT 1 FROM pg_locks WHERE NOT granted"))).first():
                await asyncio.sleep(0.05)
    with pytest.raises(FieldRefused, match="not valid"):
        await taking
    async with transaction() as db:
        assert (await of(db, two.old), await of(db, two.new)) == ([two.wallets[1]], [])


async def test_of_several_codes_asked_for_at_once_one_counts(database: str) -> None:
    async with transaction() as db:
        two = await two_accounts(db)

    async def offered() -> str:
        async with transaction() as db:
            return (await wallet_handover.offer(db, two.old)).code

    codes = await asyncio.gather(*(offered() for _ in range(4)))
    valid = 0
    for code in codes:
        async with transaction() as db:
            with suppress(FieldRefused):
                valid += len((await wallet_handover.preview(db, two.new, code)).wallets) == 2
    assert valid == 1


async def test_a_code_whose_account_is_deleted_while_it_is_entered_does_not_count(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with transaction() as db:
        two = await two_accounts(db)
        code = (await wallet_handover.offer(db, two.old)).code
    asked = AsyncSession.now

    async def erased_meanwhile(db: AsyncSession) -> datetime:
        async with transaction() as other:
            await erasure.forget(other, two.old)
        return await asked(db)

    monkeypatch.setattr(AsyncSession, "now", erased_meanwhile)
    async with transaction() as db:
        with pytest.raises(FieldRefused, match="This code is not valid"):
            await wallet_handover.take(db, two.new, code)
