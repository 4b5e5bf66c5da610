"""Answers made to be costly to read, by a contract, a collection's author or a node, cost about what they weigh."""

import tracemalloc

import pytest

from gateways.evm.balances import aggregate3
from gateways.evm.rpc.errors import Reverted, rpc_error
from gateways.solana.das_lists import by_collection, everything
from gateways.solana.node import SolanaNodes
from gateways.transport.base58 import LONGEST, decode
from gateways.transport.errors import ProviderConfused
from tests.gateways.solana.asset_index import COLLECTION, OWNER, TOKENS, Index, asset
from tests.gateways.solana_stand_in import standing_in

MEGABYTE = 1_000_000


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
