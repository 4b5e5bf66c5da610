"""The card about two Discord accounts: a code in one account, its confirmation and result in the other."""

from collections.abc import AsyncIterator

import pytest

from services.runtime import rate_limits
from state.account.wallet_handover import HandoverState
from state.account.wallets import WalletsState
from state.core.toasts import ToastState
from tests.jobs.town import Town, a_town
from tests.state.conftest import SignIn


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    async with a_town(sandbox_url, "ada", "carol") as made:
        yield made


async def test_a_code_of_one_account_is_entered_in_the_other(sign_in: SignIn, town: Town) -> None:
    await rate_limits.forget()
    name = town.people["carol"]["username"]
    carol, _ = await sign_in(name)
    carol.go("/wallet-verification")
    card = await carol.state(HandoverState)
    await carol.run(card.offer())
    assert (card.code, card.valid) == ("", "This account has no such wallet.")
    await town.prove("carol")
    assert not card.giving
    card.begin()
    assert card.giving
    for odd in ("9" * 20, "9" * 10, "²", "x"):
        card.set_wallet(odd)
        await carol.run(card.offer())
        assert (card.code, card.valid) == ("", "This account has no such wallet."), odd
    card.set_wallet("")
    await carol.run(card.offer())
    assert card.valid.endswith("once, for 1 wallet. Never tell it to anybody.")

    ada, _ = await sign_in(town.people["ada"]["username"])
    ada.go("/wallet-verification")
    other = await ada.state(HandoverState)
    other.set_entered("wrong")
    await ada.run(other.look())
    assert (other.fault.startswith("This code is not valid."), other.asked) == (True, "")
    other.set_entered(card.code)
    await ada.run(other.look())
    assert (other.fault, other.asked) == ("", f"1 wallet of {name} becomes yours?")
    other.set_entered(card.code)
    assert other.asked == "", "the dialog is about the code as it was"
    await ada.run(other.look())
    await ada.run(other.take())
    assert (await ada.state(ToastState)).title == "1 wallet is yours now"
    listed = await ada.state(WalletsState)
    await ada.run(listed.load())
    assert [row.address for row in listed.rows] == [town.wallet("carol")]
    await carol.run(card.withdraw())
    assert (card.code, card.valid) == ("", "")
