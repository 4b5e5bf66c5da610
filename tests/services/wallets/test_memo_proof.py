"""Wallets on Solana, proved by a memo that they signed, or named by a .sol name."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import text

from gateways import gateways
from gateways.solana.transactions import SolanaTransaction, SolanaTransactions
from models import transaction
from services.core.errors import FieldRefused, ProviderUnavailable
from services.wallets import names
from tests.jobs.conftest import product as product
from tests.sandbox.control import SandboxControl
from tests.services.wallets.walker import Walker, clock_looks

CAROL = "3tF45NttFL4K8smZuqzPD61awTEToSph6dfCWhCc5MGR"
STRANGER = "1" * 31 + "7"


@pytest.fixture
async def walker(product: None, sandbox_url: str) -> AsyncIterator[Walker]:
    async with SandboxControl(sandbox_url) as control:
        await control.delete("/control/faults")
        yield await Walker.new(control)
        await control.delete("/control/faults")


async def code(walker: Walker) -> str:
    view = await walker.challenge(walker.solana)
    assert (view.family, view.chains) == ("solana", ())
    assert view.memo is not None
    return view.memo


async def signs(walker: Walker, memo: str, **more: Any) -> str:
    """Send a memo in a transaction from the wallet, and return its signature."""
    body = {"from": walker.solana, "memo": memo, **more}
    return (await walker.tell("chains/solana/send", **body))["hash"]


async def test_a_memo_with_the_code_proves_the_wallet(walker: Walker) -> None:
    await signs(walker, await code(walker))
    verdict = await walker.verify(address=walker.solana)
    assert verdict.success, verdict.message
    assert await walker.holds() == [walker.solana]


async def test_the_clock_finds_the_memo_among_many_while_nobody_asks(walker: Walker) -> None:
    memo = await code(walker)
    for number in range(3):
        await signs(walker, f"something else {number}")
    await signs(walker, memo)
    await signs(walker, "something after it")
    assert await clock_looks() == 1
    assert await walker.holds() == [walker.solana]


@pytest.mark.parametrize("method", ["clock", "verify"])
async def test_a_transaction_that_a_node_lists_before_it_returns_it_is_asked_for_again(
    walker: Walker, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    memo = await code(walker)
    await signs(walker, "something before it")
    await signs(walker, memo)
    await signs(walker, "something after it")

    async def lags(*_: object, **__: object) -> None:
        return None

    with monkeypatch.context() as patched:
        patched.setattr(SolanaTransactions, "memo_transaction", lags)
        if method == "clock":
            await clock_looks()
        else:
            assert not (await walker.verify(address=walker.solana)).success
    assert await walker.holds() == []
    await clock_looks()
    assert await walker.holds() == [walker.solana]


async def test_a_transaction_that_no_node_ever_returns_hides_no_later_one(
    walker: Walker, monkeypatch: pytest.MonkeyPatch
) -> None:
    memo = await code(walker)
    lost = await signs(walker, memo)
    honest = SolanaTransactions.memo_transaction

    async def loses(self: SolanaTransactions, signature: str, **more: Any) -> SolanaTransaction | None:
        return None if signature == lost else await honest(self, signature, **more)

    monkeypatch.setattr(SolanaTransactions, "memo_transaction", loses)
    for _ in range(2):
        await clock_looks()
    assert await walker.holds() == []
    await signs(walker, memo)
    await clock_looks()
    assert await walker.holds() == [walker.solana]


async def test_a_long_past_costs_nothing_and_a_found_memo_a_handful_of_requests(walker: Walker) -> None:
    for number in range(40):
        await signs(walker, f"long ago {number}")
    memo = await code(walker)
    await clock_looks()
    mark = (await walker.control.get("/control/requests", params={"since": 2**31})).json()["next"]
    await signs(walker, memo)
    assert await clock_looks() == 1
    assert await walker.holds() == [walker.solana]
    answer = (await walker.control.get("/control/requests", params={"since": mark})).json()["requests"]
    asked = [one["rpc_method"] for one in answer if one["target"] == "solana"]
    assert asked.count("getSignaturesForAddress") <= 2, asked
    assert asked.count("getTransaction") <= 2, "what came before the challenge is not read"


@pytest.mark.parametrize(
    "form", ["{}", "https://solscan.io/tx/{}", "https://explorer.solana.com/tx/{}?cluster=mainnet"]
)
async def test_a_pasted_signature_or_link_proves_it(walker: Walker, form: str) -> None:
    sent = await signs(walker, await code(walker))
    verdict = await walker.verify(form.format(sent), address=walker.solana)
    assert verdict.success, verdict.message


async def test_a_pasted_signature_may_answer_an_earlier_challenge(walker: Walker) -> None:
    earlier = await code(walker)
    async with transaction() as db:
        await db.execute(text("UPDATE challenge SET expires_at = now() + interval '5 minutes'"))
    assert await code(walker) != earlier
    sent = await signs(walker, earlier)
    verdict = await walker.verify(sent, address=walker.solana)
    assert verdict.success, verdict.message


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"from": STRANGER, "to": "wallet"}, "signed"),
        ({"fail": True}, "failed"),
        ({"memo": "holdfast-somethingelse"}, "no memo"),
        ({"final": False}, "not know this transaction as final yet"),
    ],
    ids=["foreign", "failed", "another text", "not final"],
)
async def test_what_proves_nothing_is_told_so(walker: Walker, changed: dict[str, Any], said: str) -> None:
    body = {"memo": await code(walker), **changed}
    if "to" in body:
        body["to"] = walker.solana
    sent = await signs(walker, **body)
    assert said in (await walker.verify(sent, address=walker.solana)).message
    assert not (await walker.verify(address=walker.solana)).success
    assert await walker.holds() == []


async def test_an_endpoint_in_trouble_is_no_verdict(walker: Walker) -> None:
    sent = await signs(walker, await code(walker))
    for kind in ("500", "malformed", "empty"):
        await walker.tell("faults", target="solana", kind=kind, seconds=60)
        for pasted in (sent, ""):
            verdict = await walker.verify(pasted, address=walker.solana)
            assert (verdict.success, verdict.again) == (False, True)
    await walker.control.delete("/control/faults")
    assert (await walker.verify(address=walker.solana)).success


async def test_a_name_of_solana_is_asked_about_by_its_wallet(walker: Walker) -> None:
    view = await walker.challenge(" Carol.SOL ")
    assert (view.name, view.family, view.address) == ("carol.sol", "solana", CAROL)
    assert view.memo is not None


@pytest.mark.parametrize(
    ("given", "said"), [("nobody-has-this.sol", "stands for no wallet on Solana"), ("näme.sol", "not a valid name")]
)
async def test_a_name_that_leads_nowhere_is_told_so(walker: Walker, given: str, said: str) -> None:
    with pytest.raises(FieldRefused, match=said):
        await walker.challenge(given)


async def test_a_name_that_nobody_can_look_up_is_the_directorys_fault(walker: Walker) -> None:
    await walker.tell("faults", target="solana", kind="500", seconds=60)
    with pytest.raises(ProviderUnavailable, match="cannot be looked up right now"):
        await walker.challenge("carol.sol")
    assert "cannot be looked up right now" in (await walker.verify(address="carol.sol")).message


async def test_without_a_resolver_names_of_solana_are_refused(walker: Walker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateways().solana_names, "_url", "")
    with pytest.raises(names.NameRefused, match="not looked up here"):
        await names.resolve(gateways(), "carol.sol")
