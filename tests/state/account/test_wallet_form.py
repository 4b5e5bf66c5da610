"""The wallet form's toasts (docs/specification.md#section-8-errors), and the form before and after them.

See docs/specification.md#section-4-states-and-transitions.
"""

import secrets
from collections.abc import AsyncIterator
from typing import Any, cast

import httpx
import pytest

from models import now
from services.core.errors import ProviderUnavailable
from services.runtime import rate_limits
from services.wallets import bio_proof, names, wallets
from services.wallets.wallets import Verdict
from settings import settings
from state.account.wallet_proof import BIO, TRANSACTION, WalletProofState
from state.core import watchers
from state.core.session import SessionState
from state.core.timing import RETURN_GAP
from tests.state.conftest import Beside, SignIn, Tab

ADDRESS = "0x" + "12" * 20


async def opened(sign_in: SignIn) -> tuple[Tab, WalletProofState]:
    """Open the form as dave."""
    tab, _ = await sign_in("dave")
    tab.go("/wallet-verification")
    return tab, await tab.state(WalletProofState)


@pytest.mark.parametrize(
    ("address", "outcome", "toast"),
    [
        ("", None, "Missing Information: Please enter a wallet address."),
        (ADDRESS, Verdict(success=False, message="It is not there."), "Verification Failed: It is not there."),
        (ADDRESS, ProviderUnavailable("OpenSea"), "Error: Failed to verify wallet. Please try again."),
        (ADDRESS, Verdict(success=True, message=""), "Wallet Verified: Your wallet has been successfully verified!"),
    ],
)
async def test_each_outcome_has_its_toast(
    sign_in: SignIn, monkeypatch: pytest.MonkeyPatch, address: str, outcome: Verdict | Exception | None, toast: str
) -> None:
    async def verify(*_: object) -> Verdict:
        assert outcome is not None, "nothing is asked without an address"
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(wallets, "verify", verify)
    tab, state = await opened(sign_in)
    assert state.method == BIO
    state.address, state.method = address, TRANSACTION
    await tab.run(state.verify())
    assert await tab.toast() == toast
    proved = isinstance(outcome, Verdict) and outcome.success
    assert (state.address, state.method, state.pending) == (
        ("", BIO, False) if proved else (address, TRANSACTION, False)
    )


async def test_why_no_proof_could_be_looked_for_stays_after_the_toast(
    sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIMIT_PROOFS", "1")
    settings.cache_clear()
    tab, state = await opened(sign_in)
    state.address = ADDRESS
    for _ in range(2):
        await tab.run(state.verify())
    assert await tab.toast() == "Error: Failed to verify wallet. Please try again."
    assert "again in " in state.note, "it says when"


async def test_a_second_press_is_not_answered_with_an_error(sign_in: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    async def verify(*_: object) -> Verdict:
        return Verdict(success=True, message="")

    monkeypatch.setattr(wallets, "verify", verify)
    tab, state = await opened(sign_in)
    state.address = ADDRESS
    for _ in range(2):
        await tab.run(state.verify())
        assert (await tab.toast()).startswith("Wallet Verified: ")
    await tab.run(state.enter_address("0x"))
    await tab.run(state.enter_address(""))
    await tab.run(state.verify())
    assert await tab.toast() == "Missing Information: Please enter a wallet address."


@pytest.fixture
async def sandbox(discord: None) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=settings().sandbox_url, timeout=30) as client:
        yield client
        await client.delete("/control/limits")


@pytest.fixture
async def form(
    sign_in: SignIn, sandbox: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> tuple[Tab, WalletProofState]:
    """dave's form with an address that nobody has, and his code for it; the tab stays open."""

    async def is_open(_: str) -> bool:
        return True

    monkeypatch.setattr(watchers, "is_open", is_open)
    tab, state = await opened(sign_in)
    await tab.run(state.enter_address("0x" + secrets.token_hex(20)))
    assert state.code
    return tab, state


async def test_nothing_is_said_or_spent_before_an_address_is_whole(
    sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent: list[object] = []

    async def spend(limit: object, *_: object) -> None:
        spent.append(limit)

    monkeypatch.setattr(rate_limits, "spend", spend)
    tab, state = await opened(sign_in)
    for end in range(1, len(ADDRESS)):
        await tab.run(state.enter_address(ADDRESS[:end]))
    assert (spent, state.address_fault, state.note, state.code) == ([], "", "", "")
    await tab.run(state.enter_address(f"{ADDRESS[:-1]}g"))
    assert (len(spent), state.address_fault.startswith("An address that starts with 0x has 42")) == (0, True)
    await tab.run(state.enter_address(f"{ADDRESS}12"))
    assert (len(spent), state.address_fault.startswith("An address that starts with 0x has 42")) == (0, True)
    await tab.run(state.enter_address(ADDRESS))
    assert (len(spent), state.address_fault, bool(state.code)) == (1, "", True)


async def test_a_name_that_is_not_confirmed_is_asked_for_in_the_words_of_the_screen(
    sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def verify(*_: object) -> Verdict:
        return Verdict(success=False, message="for programs", resolved=("dave.eth", ADDRESS))

    monkeypatch.setattr(wallets, "verify", verify)
    tab, state = await opened(sign_in)
    state.address = "dave.eth"
    await tab.run(state.verify())
    assert await tab.toast() == "Verification Failed: Confirm the address above first."
    assert (state.named_address, state.note) == (ADDRESS, "")


@pytest.mark.parametrize("meanwhile", ["choose_method", "verify", "load"])
async def test_a_name_is_answered_whatever_is_pressed_while_it_is_looked_up(
    form: tuple[Tab, WalletProofState], monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    tab, state = form
    asked = list[str]()

    async def resolve(_: object, name: str) -> tuple[str, str]:
        asked.append(name)
        if len(asked) == 1:
            state._visit = (await tab.state(SessionState)).visit
            given = (TRANSACTION,) if meanwhile == "choose_method" else ()
            again = await tab.run(getattr(state, meanwhile)(*given))
            assert any(again) == (meanwhile == "load"), "after a reconnect the process that looked it up may be gone"
        return name, ADDRESS

    async def verify(*_: object) -> Verdict:
        return Verdict(success=False, message="dave.eth stands for no wallet.")

    monkeypatch.setattr(names, "resolve", resolve)
    monkeypatch.setattr(wallets, "verify", verify)
    assert len(await tab.run(state.enter_address("dave.eth"))) == 1
    await cast(Any, WalletProofState.event_handlers["look_up"].fn)(Beside(state), state._entry)
    assert (asked, state.resolving, state.named_address) == (["dave.eth"], False, ADDRESS)


async def look_again(state: WalletProofState) -> None:
    """Run the events that are handled in the background."""
    handler = cast(Any, WalletProofState.event_handlers["look_again"].fn)
    async for _ in handler(Beside(state), state._look):
        pass


async def says(sandbox: httpx.AsyncClient, address: str, **profile: str) -> None:
    assert (await sandbox.put(f"/control/opensea/accounts/{address}", json=profile)).status_code == 200


async def test_a_code_that_is_saved_is_found_when_the_tab_comes_back(
    form: tuple[Tab, WalletProofState], sandbox: httpx.AsyncClient
) -> None:
    tab, state = form
    assert await tab.run(state.tab_changed(True)) == [], "the person is away"
    await says(sandbox, state.address, bio=f"gm {state.code}")
    assert len(await tab.run(state.tab_changed(False))) == 1
    assert state.looking
    await look_again(state)
    assert await tab.toast() == "Wallet Verified: Your wallet has been successfully verified!"
    assert (state.address, state.code, state.looking) == ("", "", False)


async def test_a_tab_that_comes_and_goes_looks_no_more_often(form: tuple[Tab, WalletProofState]) -> None:
    tab, state = form
    assert len(await tab.run(state.tab_changed(False))) == 1
    state._looked_at = now()
    for _ in range(3):
        assert await tab.run(state.tab_changed(False)) == []
    state._looked_at = now() - RETURN_GAP
    state.method = TRANSACTION
    assert await tab.run(state.tab_changed(False)) == []


async def test_while_there_are_no_reads_the_form_says_so_and_goes_on_once_there_are(
    form: tuple[Tab, WalletProofState], sandbox: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    tab, state = form
    monkeypatch.setattr(bio_proof, "LONG_WAIT", 1)
    await says(sandbox, state.address, bio=state.code)
    await sandbox.put("/control/limits", json={"target": "opensea", "left": 0, "seconds": 2})
    await tab.run(state.verify())
    assert "OpenSea lets us look at no more profiles right now. Please try again in" in state.note
    assert "Or choose Transaction Proof" in state.note
    assert state.looking
    await look_again(state)
    assert await tab.toast() == "Wallet Verified: Your wallet has been successfully verified!"


async def test_a_linked_wallet_leads_to_the_one_that_its_profile_names(
    form: tuple[Tab, WalletProofState], sandbox: httpx.AsyncClient
) -> None:
    tab, state = form
    main = "0x" + secrets.token_hex(20)
    await says(sandbox, main, username=f"n{main[2:12]}")
    await says(sandbox, state.address, linked_to=main)
    await tab.run(state.verify())
    assert (state.linked_address, state.looking) == (main, False)
    assert await tab.run(state.tab_changed(False)) == [], "looking again would find the same"
    assert len(await tab.run(state.claim_linked())) == 1
    await tab.run(state.enter_address(main))
    assert (state.linked_address, state.address) == ("", main)
    await says(sandbox, main, bio=state.code)
    await tab.run(state.verify())
    assert await tab.toast() == "Wallet Verified: Your wallet has been successfully verified!"
