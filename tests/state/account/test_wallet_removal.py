"""Removing a wallet on the wallets screen: once for two presses, and not denied by a list that cannot be read."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from services.core.errors import WalletNotFound
from services.wallets import wallets
from state.account.wallets import WalletsState
from state.core import retry
from tests.jobs.town import Town, a_town
from tests.state.conftest import SignIn, Tab


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    async with a_town(sandbox_url, "carol") as made:
        await made.prove("carol")
        yield made


@pytest.fixture
async def screen(sign_in: SignIn, town: Town) -> tuple[Tab, WalletsState]:
    """carol's screen, with the dialog that asks about her only wallet."""
    tab, _ = await sign_in(town.people["carol"]["username"])
    tab.go("/wallet-verification")
    state = await tab.state(WalletsState)
    await tab.run(state.load())
    await tab.run(state.ask_remove(state.rows[0].id))
    assert state.asked_id
    return tab, state


async def _remove_elsewhere(sign_in: SignIn, town: Town, wallet_id: int) -> None:
    """Remove carol's wallet in another tab."""
    other, _ = await sign_in(town.people["carol"]["username"])
    other.go("/wallet-verification")
    beside = await other.state(WalletsState)
    await other.run(beside.load())
    await other.run(beside.ask_remove(wallet_id))
    await other.run(beside.remove())


async def test_a_second_press_is_not_answered_with_an_error(screen: tuple[Tab, WalletsState]) -> None:
    tab, state = screen
    for _ in range(2):
        await tab.run(state.remove())
    assert (await tab.toast()).startswith("Wallet removed: 0x")
    assert state.rows == []


async def test_a_wallet_that_another_tab_has_removed_leaves_the_list(
    sign_in: SignIn, screen: tuple[Tab, WalletsState], town: Town
) -> None:
    tab, state = screen
    await _remove_elsewhere(sign_in, town, state.asked_id)
    with pytest.raises(WalletNotFound):
        await tab.run(state.remove())
    assert state.rows == []


async def test_what_was_done_elsewhere_shows_when_somebody_comes_back_to_the_tab(
    sign_in: SignIn, screen: tuple[Tab, WalletsState], town: Town
) -> None:
    tab, state = screen
    await _remove_elsewhere(sign_in, town, state.asked_id)
    await tab.run(state.tab_changed(True))
    assert len(state.rows) == 1
    await tab.run(state.tab_changed(False))
    assert state.rows == []


async def test_a_removal_is_not_denied_while_the_database_is_away(
    screen: tuple[Tab, WalletsState], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object, **__: object) -> Any:
        raise OperationalError("SELECT", {}, Exception("the server closed the connection"))

    tab, state = screen
    monkeypatch.setattr(retry, "RETRY_SECONDS", 0)
    monkeypatch.setattr(wallets, "list_wallets", away)
    await tab.run(state.remove())
    assert (await tab.toast()).startswith("Wallet removed: 0x")
    assert state.rows == []
