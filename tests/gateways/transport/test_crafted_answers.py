"""Answers made to be costly to read, by a contract, a collection's author or a node, cost about what they weigh."""

import math
import tracemalloc
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateways.chains.catalogue import CHAINS
from gateways.chains.token_sheet import MOST_IDS_KEPT, TokenHints
from gateways.evm.balances import aggregate3
from gateways.evm.rpc.errors import Reverted, rpc_error
from gateways.evm.rpc.node import Head, Node
from gateways.evm.tokens.event_topics import CONSECUTIVE
from gateways.evm.tokens.received_tokens import IdSpans, LogReader
from gateways.solana.das_lists import by_collection, everything
from gateways.solana.node import SolanaNodes
from gateways.transport.base58 import LONGEST, decode
from gateways.transport.errors import ProviderConfused
from tests.gateways.solana.asset_index import COLLECTION, OWNER, TOKENS, Index, asset
from tests.gateways.solana_stand_in import standing_in

MEGABYTE = 1_000_000
WALLET = "0x" + 20 * "ab"
HEAD = Head(1_000, datetime.now(UTC))


def word(number: int) -> bytes:
    return number.to_bytes(32, "big")


def test_a_revert_with_megabytes_of_data_takes_no_multiple_of_them() -> None:
    data = "0x" + "ab" * MEGABYTE
    tracemalloc.start()
    try:
        fault = rpc_error("a node", 3, "execution reverted", data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(fault, Reverted)
    assert fault.data == b"\xab" * MEGABYTE
    assert peak < 20 * MEGABYTE


@pytest.mark.parametrize("data", ["0xabc", "0xabcg", "0x" + "ab" * 20 + " and more", "no data", "", None, 7])
def test_what_is_no_hexadecimal_is_no_data_of_a_revert(data: object) -> None:
    fault = rpc_error("a node", 3, "execution reverted", data)
    assert isinstance(fault, Reverted)
    assert fault.data == b""


def test_results_that_share_their_bytes_are_no_aggregate() -> None:
    """Otherwise a thousand results could each be a copy of the whole answer."""
    result = word(1) + word(64) + word(32 * 100) + bytes(32 * 100)
    for count in (1, 2):
        answer = word(32) + word(count) + word(32 * count) * count + result
        if count == 1:
            assert aggregate3.read_bytes("a node", answer, count) == [bytes(32 * 100)]
        else:
            with pytest.raises(ProviderConfused, match="share"):
                aggregate3.read_bytes("a node", answer, count)


def test_a_text_longer_than_any_transaction_is_not_decoded() -> None:
    """Decoding takes the square of the length: a megabyte would block the process for minutes."""
    assert decode("2" * LONGEST) is not None
    assert decode("2" * (LONGEST + 1)) is None


async def test_a_list_of_assets_keeps_nothing_of_what_their_author_wrote() -> None:
    """A list has a thousand assets on a page, and each may have kilobytes of traits."""
    async with standing_in() as node:
        content = {"json_uri": "https://x.example/1", "metadata": {"name": "An asset", "attributes": [{"value": "x"}]}}
        Index(node, *(asset(token, content=content) for token in TOKENS[:3]))
        nodes = SolanaNodes([node.url])
        pages = await everything(nodes.nodes[0], by_collection(COLLECTION), 3)
        await nodes.close()
    assert pages is not None
    listed = [one for page in pages for one in page.assets]
    assert [(one.owner, one.link, one.attributes) for one in listed] == [(OWNER, "", None)] * 3


class FloodedNode:
    """A node whose logs say, a hundred times, that tokens of consecutive ids came to a wallet (ERC-2309)."""

    name, url, mark, chain = "a node", "http://flooded.example", 1, CHAINS["base"]

    async def batch(self, _calls: object) -> list[Any]:
        return [hex(HEAD.block), [self.log(number) for number in range(100)]]

    async def call(self, _method: str, _params: object) -> list[Any]:
        return []

    def log(self, number: int) -> dict[str, Any]:
        first = number * 1_000_000
        topics = [CONSECUTIVE, f"0x{first:064x}", "0x" + 64 * "0", "0x" + 24 * "0" + WALLET[2:]]
        said = {"address": "0x" + 20 * "77", "blockNumber": hex(HEAD.block), "topics": topics}
        return {**said, "data": f"0x{first + 999_999:064x}"}


async def test_no_more_tokens_are_taken_from_logs_than_are_kept() -> None:
    """Anybody can send such events to anybody's wallet, ten thousand in a block."""
    trails = dict[str, TokenHints]()
    reader = LogReader(cast("Node", FloodedNode()))
    tracemalloc.start()
    try:
        complete, _ = await reader.search("", False, [WALLET], trails, HEAD, math.inf)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (complete, len(trails[WALLET].ids)) == (set(), MOST_IDS_KEPT)
    assert peak < 10 * MEGABYTE


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(-1, 12))))
def test_ids_that_were_read_are_not_named_again(spans: list[tuple[int, int]]) -> None:
    read, every = IdSpans(), set[int]()
    for first, more in spans:
        asked = set(range(first, first + more + 1))
        named = [one for part in read.fresh(first, first + more) for one in part]
        assert named == sorted(asked - every)
        every |= asked
