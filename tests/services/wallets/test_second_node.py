"""A proof by a transaction needs two nodes if its chain has two: a single lying node cannot give a wallet away."""

from collections.abc import AsyncIterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateways import Gateways, gateways
from gateways.chains import node_providers
from gateways.evm.transactions import EvmTransactions, Transaction
from gateways.solana.client import SolanaChains
from gateways.solana.transactions import SolanaTransaction, SolanaTransactions
from gateways.transport.errors import NotThere, ProviderDown
from models import now
from services.wallets.proof_watch import judge_signature
from services.wallets.transaction_check import TransactionOutcome
from services.wallets.watched_challenge import OpenChallenge
from tests.jobs.conftest import product as product
from tests.sandbox.control import SandboxControl
from tests.services.wallets.walker import Walker, clock_looks


@pytest.fixture
async def people(product: None, sandbox_url: str) -> AsyncIterator[tuple[Walker, Walker]]:
    async with SandboxControl(sandbox_url) as control:
        await control.delete("/control/faults")
        yield await Walker.new(control), await Walker.new(control)


async def test_one_node_that_names_another_sender_proves_nothing(
    people: tuple[Walker, Walker], monkeypatch: pytest.MonkeyPatch
) -> None:
    victim, thief = people
    asked = (await thief.challenge(victim.address)).chains[0]
    sent = await thief.sends("base", asked.value_wei, to=victim.address)
    honest = EvmTransactions.transaction

    async def lies(self: EvmTransactions, chain: str, hash: str, account: str = "", **one: Any) -> Transaction:
        found = await honest(self, chain, hash, account, **one)
        return replace(found, sender=victim.address) if found.endpoint == 0 else found

    monkeypatch.setattr(EvmTransactions, "transaction", lies)
    for pasted in (sent, ""):
        verdict = await thief.verify(pasted, address=victim.address)
        assert (verdict.success, verdict.again) == (False, True)
        assert "The nodes of Base do not agree about your transaction yet" in verdict.message
    await clock_looks()
    assert await thief.holds() == []


@pytest.mark.parametrize("fault", [NotThere, ProviderDown])
async def test_a_second_node_that_has_not_seen_it_is_waited_for_and_one_that_is_away_is_not(
    people: tuple[Walker, Walker], monkeypatch: pytest.MonkeyPatch, fault: type[NotThere | ProviderDown]
) -> None:
    walker, _ = people
    await walker.sends("base", await walker.amount())
    honest = EvmTransactions.transaction

    async def lags(self: EvmTransactions, chain: str, hash: str, account: str = "", **one: Any) -> Transaction:
        if one.get("endpoint") == 1:
            raise fault("The second node", "no")
        return await honest(self, chain, hash, account, **one)

    with monkeypatch.context() as patched:
        patched.setattr(EvmTransactions, "transaction", lags)
        assert (await walker.verify()).success is (fault is ProviderDown)
    await clock_looks()
    assert await walker.holds() == [walker.address]


@pytest.mark.parametrize("method", ["verify", "clock"])
async def test_one_node_of_solana_that_names_another_signer_proves_nothing(
    people: tuple[Walker, Walker], monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    victim, thief = people
    memo = (await thief.challenge(victim.solana)).memo
    body = {"from": thief.solana, "to": victim.solana, "memo": memo}
    sent = (await thief.tell("chains/solana/send", **body))["hash"]
    honest, lies = SolanaTransactions.memo_transaction, True

    async def lying(
        self: SolanaTransactions, signature: str, *, endpoint: int | None = None
    ) -> SolanaTransaction | None:
        found = await honest(self, signature)
        if found is None or endpoint == 1 or not lies:
            return found
        return replace(found, signers=(victim.solana,))

    monkeypatch.setattr(SolanaTransactions, "memo_transaction", lying)
    monkeypatch.setattr(SolanaChains, "endpoints", lambda *_: 2)
    if method == "clock":
        assert await clock_looks() == 1
        assert await thief.holds() == []
    for pasted in (sent, ""):
        verdict = await thief.verify(pasted, address=victim.solana)
        assert verdict.success is False
        assert "The nodes of Solana do not agree about your transaction yet" in verdict.message
    assert await thief.holds() == []
    assert gateways().chains.endpoints("solana") == 2
    # The transaction is not skipped: it is judged once both nodes agree.
    lies = False
    assert "not signed by" in (await thief.verify(sent, address=victim.solana)).message


async def test_the_second_node_is_one_of_another_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    urls = ("https://one.nodes.com", "https://two.nodes.com", "https://rpc.elsewhere.com")
    monkeypatch.setattr(node_providers, "settings", lambda: SimpleNamespace(rpc={"solana": urls}))
    victim, thief, code = "Vi" * 16, "Th" * 16, "holdfast-abc"
    asked: list[int] = []

    async def memo_transaction(signature: str, *, endpoint: int = 0) -> SolanaTransaction:
        asked.append(endpoint)
        signer = thief if urls[endpoint].endswith("elsewhere.com") else victim
        return SolanaTransaction(signature, 9, None, True, (signer,), (code,), endpoint)

    chains = SimpleNamespace(endpoints=lambda _: len(urls))
    outside = cast(
        "Gateways", SimpleNamespace(chains=chains, solana=SimpleNamespace(memo_transaction=memo_transaction))
    )
    stolen = OpenChallenge(1, 1, "solana", victim, code, 1, now(), {})
    assert await judge_signature(outside, [stolen], "5" * 88) is stolen
    assert stolen.judged is not None
    assert (stolen.judged.outcome, asked) == (TransactionOutcome.WAITS, [0, 2])
