"""Transactions on Solana: the signers of memos, and a wallet's transactions after a slot."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple, cast

from gateways.solana.node import SolanaNode, SolanaNodes
from gateways.transport.base58 import decode
from gateways.transport.corrected_clock import LATEST
from gateways.transport.errors import NotThere, ProviderConfused
from gateways.transport.json_shape import Shape, listed

MEMO_PROGRAMS = frozenset(
    {"MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr", "Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo"}
)
"""The Memo program's versions 2 and 1 (docs/facts.md#solana-memos)."""
FINALIZED = "finalized"
SIGNATURES_A_PAGE = 1_000
MOST_PAGES = 5


@dataclass(frozen=True, slots=True)
class SolanaTransaction:
    """A finalized transaction. `ok` says that it succeeded; a failed one proves nothing.

    `signers` are the addresses that signed it, without addresses that it only mentions. `memos` are the unchanged texts
    of its top-level Memo instructions. `slot` orders transactions; `time` is None where the node stores none.
    `endpoint` is the number of the node that answered.
    """

    signature: str
    slot: int
    time: datetime | None
    ok: bool
    signers: tuple[str, ...]
    memos: tuple[str, ...]
    endpoint: int = 0


@dataclass(frozen=True, slots=True)
class SolanaSignature:
    """A finalized transaction that mentions a wallet, as a list shows it.

    `memo` is the node's own summary ("[16] text; [4] more", docs/facts.md#solana-memos). It helps to choose which
    transaction to fetch, but proves nothing.
    """

    signature: str
    slot: int
    ok: bool
    memo: str | None


class NewSignatures(NamedTuple):
    """The newest of the finalized transactions after a slot that mention a wallet, oldest first."""

    newest: list[SolanaSignature]
    is_whole: bool
    """Whether they are all; otherwise there are older ones after the slot."""


class SolanaTransactions:
    """The transactions on the nodes of RPC_SOLANA (docs/facts.md#solana-transactions).

    A failure raises ProviderError and never means "there is none".
    """

    def __init__(self, nodes: SolanaNodes) -> None:
        self._nodes = nodes

    async def close(self) -> None:
        """Close the nodes' connections."""
        await self._nodes.close()

    async def memo_transaction(self, signature: str, *, endpoint: int | None = None) -> SolanaTransaction | None:
        """Return the transaction with this signature; None while no node knows it as finalized. By getTransaction.

        A transaction is finalized 13 s after it was sent. If one node does not know it, the next one is tried; with a
        number as `endpoint`, only that node is used.
        """

        async def ask(node: SolanaNode) -> SolanaTransaction:
            await node.head()
            options = {"encoding": "jsonParsed", "commitment": FINALIZED, "maxSupportedTransactionVersion": 0}
            found = await node.ask("getTransaction", [signature, options])
            if found is None:
                raise NotThere(node.name, "no such transaction")
            return replace(_transaction(node.name, signature, found), endpoint=node.index)

        try:
            return await self._nodes.first(ask, endpoint=endpoint)
        except NotThere:
            return None

    async def newer_signatures(self, address: str, since_slot: int) -> NewSignatures:
        """Return the finalized transactions after `since_slot` that mention the address: at most the newest 5,000.

        By getSignaturesForAddress, newest first and backwards as far as `since_slot`. Get that slot from
        `Chains.head("solana")` when a challenge begins. Anybody can mention a wallet, as often as they pay for it.
        """

        async def ask(node: SolanaNode) -> NewSignatures:
            await node.head(since_slot)
            return await _newer(node, address, since_slot)

        return await self._nodes.first(ask)


async def _newer(node: SolanaNode, address: str, since_slot: int) -> NewSignatures:
    found: list[SolanaSignature] = []
    before: Mapping[str, object] = {}
    for _ in range(MOST_PAGES):
        options = {"limit": SIGNATURES_A_PAGE, "commitment": FINALIZED, **before}
        page = [
            _signature(node.name, item)
            for item in listed(await node.ask("getSignaturesForAddress", [address, options]), "the list", node.name)
        ]
        fresh = [one for one in page if one.slot > since_slot]
        found += fresh
        if not page or len(fresh) < len(page):
            return NewSignatures(found[::-1], True)
        before = {"before": page[-1].signature}
    return NewSignatures(found[::-1], False)


def _signature(provider: str, item: object) -> SolanaSignature:
    shape = Shape(item, "a signature", provider)
    return SolanaSignature(
        shape.text("signature"), shape.number("slot"), _succeeded(provider, shape, item), shape.text_or_none("memo")
    )


def _succeeded(provider: str, shape: Shape, item: object) -> bool:
    """Return whether a transaction succeeded: `err` is null. Raises ProviderConfused without that key."""
    if not shape.has("err"):
        raise ProviderConfused(provider, "it does not say whether the transaction succeeded")
    return cast("Mapping[str, object]", item)["err"] is None


def _transaction(provider: str, signature: str, found: object) -> SolanaTransaction:
    shape = Shape(found, "the transaction", provider)
    meta, inner = cast("Mapping[str, object]", found).get("meta"), shape.inner("transaction")
    if signature not in inner.items("signatures"):
        raise ProviderConfused(provider, "the answer is another transaction")
    message = inner.inner("message")
    keys = [Shape(key, "an account key", provider) for key in message.items("accountKeys")]
    return SolanaTransaction(
        signature=signature,
        slot=shape.number("slot"),
        time=_moment(cast("Mapping[str, object]", found).get("blockTime")),
        ok=_succeeded(provider, Shape(meta, "the transaction's meta", provider), meta),
        signers=tuple(key.text("pubkey") for key in keys if key.flag("signer")),
        memos=tuple(memo for item in message.items("instructions") if (memo := _memo(item)) is not None),
    )


def _moment(seconds: object) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if isinstance(seconds, int) and 0 < seconds <= LATEST else None


def _memo(item: object) -> str | None:
    """Return the text of a Memo instruction, parsed by the node or decoded from base58; None if it has none."""
    if not isinstance(item, dict):
        return None
    instruction = cast("dict[str, object]", item)
    if instruction.get("programId") not in MEMO_PROGRAMS:
        return None
    parsed, data = instruction.get("parsed"), instruction.get("data")
    if isinstance(parsed, str):
        return parsed
    return _decoded(data) if isinstance(data, str) else None


def _decoded(text: str) -> str | None:
    try:
        return (decode(text) or b"").decode() or None
    except UnicodeDecodeError:
        return None
