"""How many wallets one person may have: no proof adds one beyond that, and nobody loses what they have."""

import pytest
from sqlmodel import col, select

from models import Challenge, Wallet, transaction
from services.core.errors import FieldRefused
from services.wallets import challenges, ownership, wallets
from services.wallets.ownership import TooManyWallets, WalletProof
from settings import settings
from tests.jobs.conftest import product as product
from tests.jobs.conftest import town as town
from tests.jobs.town import Town
from tests.services.wallets.test_wallets import actor, code_of, held_by, says, verify
from tests.support.builders import address


@pytest.fixture
def at_most_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WALLETS_PER_PERSON", "2")
    settings.cache_clear()


@pytest.mark.usefixtures("at_most_two")
async def test_a_person_has_no_more_wallets_than_one_may_have(town: Town) -> None:
    carol = await actor(town, "carol")
    first, second, third = address(), address(), address()
    code = await code_of(carol, third)
    for one in (first, second):
        await says(town, one, await code_of(carol, one))
        assert (await verify(carol, one)).success
    with pytest.raises(FieldRefused) as refused:
        await code_of(carol, third)
    assert str(refused.value.message) == (
        "You have 2 wallets here, and a person can have at most 2. "
        "Remove a wallet that you no longer need, then add this one."
    )
    # An earlier challenge does not get around the limit either.
    await says(town, third, code)
    verdict = await verify(carol, third)
    assert (verdict.success, verdict.message) == (False, refused.value.message)
    assert await held_by(carol) == [first, second]
    assert await code_of(carol, first), "the own ones can be proved again"
    async with transaction() as db:
        (row, *_) = await wallets.list_wallets(db, carol)
        await wallets.remove(db, carol, row.id)
    assert (await verify(carol, third)).success
    assert await held_by(carol) == [second, third]


@pytest.mark.usefixtures("at_most_two")
async def test_who_has_more_wallets_from_before_keeps_them(town: Town) -> None:
    carol, mine = await actor(town, "carol"), [address() for _ in range(4)]
    async with transaction() as db:
        for one in mine:
            db.add(Wallet(user_id=carol.user_id, family="evm", address=one, method="opensea_bio"))
    with pytest.raises(FieldRefused, match="You have 4 wallets here, and a person can have at most 2"):
        await code_of(carol, address())
    assert await held_by(carol) == mine


@pytest.mark.usefixtures("at_most_two")
async def test_a_transaction_adds_no_wallet_beyond_the_limit_either(town: Town) -> None:
    carol = await actor(town, "carol")
    async with transaction() as db:
        made = [await challenges.current(db, carol, "evm", address()) for _ in range(3)]
        found = [await db.get_one(Challenge, one.id) for one in made]
        for number, row in enumerate(found):
            spent = WalletProof("transaction", {}, strong=True, spends=(f"0x{number:064x}", "base"))
            if number < 2:
                await ownership.keep(db, carol, row, spent)
                continue
            with pytest.raises(TooManyWallets):
                await ownership.keep(db, carol, row, spent)
            assert not await ownership.is_spent(db, f"0x{number:064x}"), "it can still prove it later"
    assert len(await held_by(carol)) == 2


async def test_one_person_does_not_fill_the_table_with_challenges(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(challenges, "MOST_UNUSED", 3)
    carol, dave = await actor(town, "carol"), await actor(town, "dave")
    proved, waiting = address(), address()
    await says(town, proved, await code_of(carol, proved))
    assert (await verify(carol, proved)).success
    code = await code_of(dave, waiting)
    claimed = [address() for _ in range(8)]
    for one in claimed:
        await code_of(carol, one)
    async with transaction() as db:
        mine = await db.exec(select(Challenge).where(Challenge.user_id == carol.user_id).order_by(col(Challenge.id)))
        assert [row.address for row in mine] == [proved, *claimed[-3:]], "the newest, and what proved a wallet"
    assert await code_of(dave, waiting) == code, "nobody else's is touched"
    await says(town, claimed[-1], await code_of(carol, claimed[-1]))
    assert (await verify(carol, claimed[-1])).success
