"""The wallet form's toasts (specification §8), and what it is like before and after (§4)."""

from collections.abc import Awaitable, Callable

import pytest

from services import wallets
from services.errors import ProviderUnavailable
from services.wallets import Verdict
from state.wallet_proof import BIO, TRANSACTION, WalletProofState
from tests.api.browsers import Browser
from tests.state.conftest import Tab

SignIn = Callable[[str], Awaitable[tuple[Tab, Browser]]]
ADDRESS = "0x" + "12" * 20


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
    sign_in: SignIn,
    monkeypatch: pytest.MonkeyPatch,
    address: str,
    outcome: Verdict | Exception | None,
    toast: str,
) -> None:
    async def verify(*_: object) -> Verdict:
        assert outcome is not None, "nothing is asked without an address"
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(wallets, "verify", verify)
    tab, _ = await sign_in("dave")
    tab.go("/wallet-verification")
    state = await tab.state(WalletProofState)
    assert state.method == BIO
    state.address, state.method = address, TRANSACTION
    await tab.run(state.verify())
    assert await tab.toast() == toast
    proved = isinstance(outcome, Verdict) and outcome.success
    assert (state.address, state.method, state.pending) == (
        ("", BIO, False) if proved else (address, TRANSACTION, False)
    )
