"""Memos on Solana as the node reports them: the signer, the text, and whether the memo counts."""

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from aiohttp import web

from gateways.solana.node import SolanaNodes
from gateways.solana.transactions import SolanaTransactions
from gateways.transport.errors import ProviderBusy, ProviderConfused, ProviderDown, ProviderError
from tests.gateways.solana_stand_in import StandIn, busy, standing_in

MEMO = "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr"
WALLET, OTHER = "86xCnPeV69n6t3DnyGvkKobf9FdN2H9oiVDdaMpo2MMY", "HykiZV4TfiCEa7ME75b38BiEjJoQrKimu3W4DaacJJYW"
SIGNED = "5h6xBEauJ3PK6SWCZ1PGjBvj8vDdWG3KpwATGy1ARAXFSDwt8GFXM7W5Ncn16wmqokgpiKRLuS83KUxyZyv2sUYv"


def transaction(*instructions: dict[str, Any], err: Any = None, signer: bool = True, **changed: Any) -> dict[str, Any]:
    """Return getTransaction's result as a node gives it (docs/facts.md#solana-transactions)."""
    return {
        "slot": 114,
        "blockTime": 1_700_000_000,
        "version": 0,
        "meta": {"err": err, "status": {"Ok": None}, "fee": 5000},
        "transaction": {
            "signatures": [SIGNED],
            "message": {
                "accountKeys": [
                    {"pubkey": OTHER if not signer else WALLET, "signer": True, "writable": True},
                    {"pubkey": WALLET if not signer else OTHER, "signer": False, "writable": True},
                    {"pubkey": MEMO, "signer": False, "writable": False},
                ],
                "instructions": list(instructions),
                "recentBlockhash": "x",
            },
        },
        **changed,
    }


def memo(text: str, **changed: Any) -> dict[str, Any]:
    return {"program": "spl-memo", "programId": MEMO, "parsed": text, "stackHeight": None, **changed}


@pytest.fixture
async def node() -> AsyncIterator[StandIn]:
    async with standing_in() as made:
        yield made


@pytest.fixture
async def proof(node: StandIn) -> AsyncIterator[SolanaTransactions]:
    made = SolanaTransactions(SolanaNodes([node.url], request_seconds=2, deadline=5))
    yield made
    await made.close()


async def test_a_memo_is_read_with_who_signed_it(node: StandIn, proof: SolanaTransactions) -> None:
    limit = {"programId": "ComputeBudget111111111111111111111111111111", "accounts": [], "data": "3ywTUxhzvDNg"}
    node.says["getTransaction"] = transaction(limit, memo("holdfast-abcdefghjk"))
    found = await proof.memo_transaction(SIGNED)
    assert found is not None
    assert (found.signature, found.slot, found.ok) == (SIGNED, 114, True)
    assert (found.signers, found.memos) == ((WALLET,), ("holdfast-abcdefghjk",))
    assert found.time is not None
    assert found.time.timestamp() == 1_700_000_000
    options = next(params for method, params in node.asked if method == "getTransaction")[1]
    assert options == {"encoding": "jsonParsed", "commitment": "finalized", "maxSupportedTransactionVersion": 0}


@pytest.mark.parametrize(
    ("answer", "signers", "memos", "ok"),
    [
        (transaction(memo("code"), signer=False), (OTHER,), ("code",), True),
        (transaction(memo("code"), err={"InstructionError": [0, "Custom"]}), (WALLET,), ("code",), False),
        (transaction({"programId": MEMO, "accounts": [], "data": "3yZe7d"}), (WALLET,), ("test",), True),
        (transaction({"programId": MEMO, "accounts": [], "data": "0OIl"}), (WALLET,), (), True),
        (transaction(memo("code", programId=OTHER)), (WALLET,), (), True),
        (transaction(memo("one"), memo("two")), (WALLET,), ("one", "two"), True),
    ],
    ids=["somebody else's", "failed", "unparsed", "not text", "another program", "two memos"],
)
async def test_what_a_transaction_is_worth_can_be_told(
    node: StandIn, proof: SolanaTransactions, answer: Any, signers: tuple[str, ...], memos: tuple[str, ...], ok: bool
) -> None:
    node.says["getTransaction"] = answer
    found = await proof.memo_transaction(SIGNED)
    assert found is not None
    assert (found.signers, found.memos, found.ok) == (signers, memos, ok)


async def test_a_memo_within_another_programs_call_is_nobodys_word(node: StandIn, proof: SolanaTransactions) -> None:
    answer = transaction({"programId": OTHER, "accounts": [WALLET], "data": "3yZe7d"})
    answer["meta"]["innerInstructions"] = [{"index": 0, "instructions": [memo("code")]}]
    node.says["getTransaction"] = answer
    found = await proof.memo_transaction(SIGNED)
    assert found is not None
    assert found.memos == ()


async def test_a_transaction_that_only_the_second_node_knows_is_found(node: StandIn) -> None:
    async with AsyncExitStack() as stack:
        second = await stack.enter_async_context(standing_in())
        node.says["getTransaction"], second.says["getTransaction"] = None, transaction(memo("code"))
        proof = SolanaTransactions(SolanaNodes([node.url, second.url]))
        stack.push_async_callback(proof.close)
        assert await proof.memo_transaction(SIGNED) is not None
        second.says["getTransaction"] = None
        assert await proof.memo_transaction(SIGNED) is None


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (lambda _: web.Response(status=500), ProviderDown),
        (busy(), ProviderBusy),
        (lambda _: web.Response(text='{"jsonrpc": "2', content_type="application/json"), ProviderConfused),
        ({"slot": 1}, ProviderConfused),
        (transaction(memo("code"), meta=None), ProviderConfused),
        (transaction(memo("code"), meta={"fee": 1}), ProviderConfused),
    ],
    ids=["500", "429", "broken", "no transaction", "no meta", "no outcome"],
)
async def test_an_unusable_answer_is_a_fault_and_not_a_missing_transaction(
    node: StandIn, proof: SolanaTransactions, answer: Any, fault: type[ProviderError]
) -> None:
    node.says["getTransaction"] = answer
    with pytest.raises(fault):
        await proof.memo_transaction(SIGNED)


async def test_another_transaction_than_the_asked_one_is_refused(node: StandIn, proof: SolanaTransactions) -> None:
    node.says["getTransaction"] = transaction(memo("code"))
    with pytest.raises(ProviderConfused):
        await proof.memo_transaction("4" + SIGNED[1:])


@pytest.mark.parametrize("kind", ["devnet", "stale"])
async def test_a_node_of_another_network_or_time_is_not_believed(
    node: StandIn, proof: SolanaTransactions, kind: str
) -> None:
    node.says["getTransaction"] = transaction(memo("code"))
    if kind == "devnet":
        node.says["getGenesisHash"] = "EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG"
    else:
        node.says["getBlockTime"] = int(time.time()) - 3600
    with pytest.raises(ProviderConfused):
        await proof.memo_transaction(SIGNED)


def listed(slot: int, **changed: Any) -> dict[str, Any]:
    shown = {"signature": f"sig{slot}", "slot": slot, "err": None, "memo": None, "blockTime": 1, **changed}
    return {**shown, "confirmationStatus": "finalized"}


async def test_only_what_came_after_the_challenge_is_listed_oldest_first(
    node: StandIn, proof: SolanaTransactions
) -> None:
    node.says["getSignaturesForAddress"] = [
        listed(900, memo="[4] code"), listed(850, err={"InstructionError": [0, "Custom"]}), listed(800), listed(700),
    ]  # fmt: skip
    found = await proof.newer_signatures(WALLET, 800)
    assert [(one.slot, one.ok, one.memo) for one in found.newest] == [(850, False, None), (900, True, "[4] code")]
    assert found.is_whole


async def test_a_busy_wallets_list_is_followed_back_to_the_challenge(node: StandIn, proof: SolanaTransactions) -> None:
    slots = list(range(5_000, 2_000, -1))

    def page(params: Any) -> list[dict[str, Any]]:
        start = 0 if "before" not in params[1] else slots.index(int(params[1]["before"][3:])) + 1
        return [listed(slot) for slot in slots[start : start + 1_000]]

    node.slot, node.says["getSignaturesForAddress"] = 9_000, page
    found = await proof.newer_signatures(WALLET, 3_500)
    assert ([one.slot for one in found.newest], found.is_whole) == (list(range(3_501, 5_001)), True)
    assert node.count("getSignaturesForAddress") == 2


async def test_of_a_wallet_with_endless_new_transactions_the_newest_are_listed(
    node: StandIn, proof: SolanaTransactions
) -> None:
    slots = iter(range(99_000, 10, -1))
    node.says["getSignaturesForAddress"] = lambda _: [listed(next(slots)) for _ in range(1_000)]
    node.slot = 100_000
    found = await proof.newer_signatures(WALLET, 10)
    assert ([one.slot for one in found.newest], found.is_whole) == (list(range(94_001, 99_001)), False)


async def test_a_node_that_asks_for_patience_gets_it(node: StandIn, proof: SolanaTransactions) -> None:
    replies = [busy(), busy(), lambda _: [listed(900), listed(800)]]
    node.says["getSignaturesForAddress"] = lambda params: replies.pop(0)(params)
    assert len((await proof.newer_signatures(WALLET, 800)).newest) == 1


async def test_without_a_node_nothing_is_known() -> None:
    with pytest.raises(ProviderDown):
        await SolanaTransactions(SolanaNodes(())).memo_transaction(SIGNED)
