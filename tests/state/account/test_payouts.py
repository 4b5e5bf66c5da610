"""The choice of a payout address on the account screen."""

from collections.abc import AsyncIterator

import pytest
from sqlmodel import select

from models import MemberChoice, Wallet, transaction
from services.core.errors import WalletNotFound
from state.account.my_data import MyDataState
from tests.jobs.town import Town, a_town
from tests.state.conftest import SignIn


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    async with a_town(sandbox_url, "ada", "carol") as made:
        await made.prove("carol")
        yield made


async def test_a_member_chooses_and_withdraws_an_address(sign_in: SignIn, town: Town) -> None:
    tab, _ = await sign_in(town.people["carol"]["username"])
    tab.go("/account")
    me = await tab.state(MyDataState)
    await tab.run(me.load())
    async with transaction() as db:
        wallet = (await db.exec(select(Wallet.id).where(Wallet.address == town.wallet("carol")))).one()
    assert [one.id for one in me.payout_wallets] == [str(wallet)]
    assert [one.payout for one in me.choices] == [""], "none by default"
    await tab.run(me.choose_payout(town.server_id, str(wallet)))
    assert [one.payout for one in me.choices] == [str(wallet)]
    for odd in ("²", "9" * 20, "x"):
        with pytest.raises(WalletNotFound):
            await tab.run(me.choose_payout(town.server_id, odd))
    async with transaction() as db:
        assert (await db.exec(select(MemberChoice.payout_wallet_id))).all() == [wallet], "no odd text withdraws it"
    await tab.run(me.choose_payout(town.server_id, ""))
    assert [one.payout for one in me.choices] == [""]
    async with transaction() as db:
        assert (await db.exec(select(MemberChoice.payout_wallet_id))).all() == [None]
