"""How a node's refusal is classified by its wording."""

import pytest
from aiohttp import web

from gateways.chains.catalogue import CHAINS
from gateways.evm.rpc.errors import (
    LONGEST_MESSAGE,
    Halted,
    NeedsAddress,
    Pruned,
    Reverted,
    RpcRefused,
    StateMissing,
    TooMuch,
    rpc_error,
)
from gateways.evm.rpc.log_refusals import too_much
from gateways.evm.rpc.node import Node
from gateways.evm.rpc.pool import NodePool
from gateways.transport import provider_reports
from gateways.transport.errors import ProviderBusy, ProviderError, Unauthorized
from tests.gateways.wire import wire

KEY = "8f0l3c0d1e2f4a5b6c7d8e9f0O1I2l47"


@pytest.mark.parametrize(
    ("message", "data"),
    [
        ("invalid jump destination", None),
        ("invalid opcode: INVALID", None),
        ("EVM error InvalidFEOpcode", None),
        ("EVM error: InvalidJump", None),
        ("stack underflow (0 <=> 1)", None),
        ("VM execution error.", "Bad jump destination"),
        ("VM execution error.", "Bad instruction fe"),
    ],
)
def test_a_halt_of_the_evm_is_told_from_a_revert(message: str, data: str | None) -> None:
    assert isinstance(rpc_error("a node", -32000, message, data), Halted)


def test_a_revert_is_the_contracts_no_and_leaves_gas() -> None:
    assert type(rpc_error("a node", -32000, "execution reverted")) is Reverted


@pytest.mark.parametrize(
    ("data", "answer"), [("Reverted 0x08c379a0", "08c379a0"), ("Reverted 0x", ""), ("revert: not the owner", "")]
)
def test_a_revert_that_only_the_data_name_is_one_too(data: str, answer: str) -> None:
    fault = rpc_error("a node", -32015, "VM execution error.", data)
    assert isinstance(fault, Reverted)
    assert (type(fault), fault.data.hex()) == (Reverted, answer)


def test_gas_that_ran_out_in_the_data_is_too_much() -> None:
    assert type(rpc_error("a node", -32015, "VM execution error.", "OutOfGas")) is TooMuch
    assert type(rpc_error("a node", -32015, "VM execution error.", "0xa9")) is RpcRefused


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("out of gas", TooMuch),
        ("memory usage limit exceeded", TooMuch),
        ("something else", RpcRefused),
        ("jump the queue", RpcRefused),
    ],
)
def test_other_refusals_are_none(message: str, kind: type[Exception]) -> None:
    assert type(rpc_error("a node", -32000, message)) is kind


@pytest.mark.parametrize("code", [3, -32000, -32603, -32015])
@pytest.mark.parametrize(
    "text", ["too many requests", "rate limit", "header not found", "please specify an address", "out of gas", "revert"]
)
@pytest.mark.parametrize("words", ["execution reverted: ", "VM Exception while processing transaction: Reverted by "])
def test_the_text_of_a_revert_is_the_contracts_and_says_nothing_about_the_node(
    code: int, text: str, words: str
) -> None:
    assert type(rpc_error("a node", code, words + text)) is Reverted


@pytest.mark.parametrize(
    ("message", "kind"),
    [("too many requests", ProviderBusy), ("header not found", StateMissing), ("specify an address", NeedsAddress)],
)
def test_the_same_text_alone_is_the_nodes(message: str, kind: type[Exception]) -> None:
    assert type(rpc_error("a node", -32000, message)) is kind


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (-32001, "You've reached the usage limit for your current plan. To continue, please upgrade here: https://a.b"),
        (-32000, "You've exceeded the RPS limit available on the current plan."),
        (-32003, "daily request limit reached - upgrade your account"),
        (-32429, "max usage reached"),
        (19, "endpoint hit 30/second request limit reached - reduce calls per second"),
    ],
)
def test_a_plan_that_is_used_up_asks_to_slow_down_and_not_for_less(code: int, message: str) -> None:
    fault = rpc_error("a node", code, message)
    assert type(fault) is ProviderBusy
    assert not too_much(fault)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (-32000, "header not found"),
        (-32000, f"missing trie node {32 * 'ab'} (path ) state 0x{32 * 'ab'} is not available"),
        (-32000, f"historical state {32 * 'ab'} is not available"),
        (-32000, "required historical state unavailable"),
        (-32001, "block not found: 0x1406f40"),
        (-32001, "21000000 could not be found"),
        (-32002, f"No state available for block 21000000 (0x{32 * 'ab'})"),
        (-32000, "World state unavailable"),
        (-32602, "Block with such an ID doesn't exist yet"),
        (-32602, "block range extends beyond current head block"),
        (-32602, "block range extends beyond current head block: requested 21000100, head 21000000"),
        (-32000, "requested block range [4096, 8192] is beyond latest executed block 4000 (node is still syncing)"),
        (-32000, "block 50162452 is beyond the latest block 50162448 of this node, retry later"),
        (-32014, "requested data not available"),
    ],
)
def test_a_node_that_lacks_a_block_or_its_state_says_so_in_many_ways(code: int, message: str) -> None:
    assert type(rpc_error("a node", code, message)) is StateMissing


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (4444, "pruned history unavailable"),
        (-32603, "state at block #12369623 is pruned"),
        (-32000, "Receipt not available for From block 14319330."),
        (-32000, "old data not available due to pruning: requested block 16999999, available from block 22000000"),
        (-32000, "seek with txNum=1962853355 but data before txNum=2662500000 is not available: blockNum=16999999"),
        (-32602, "Block with such an ID is pruned; the first retained block is 5"),
        (-32002, "Archive, Debug and Trace requests are not available on your current plan."),
    ],
)
def test_a_node_that_has_deleted_old_blocks_says_so_in_several_ways(code: int, message: str) -> None:
    assert type(rpc_error("a node", code, message)) is Pruned


def test_only_the_beginning_of_a_message_is_read() -> None:
    assert type(rpc_error("a node", -32000, "x" * LONGEST_MESSAGE + "out of gas")) is RpcRefused


@pytest.mark.parametrize("place", [f"/v2/{KEY}", f"/?api-key={KEY}"])
@pytest.mark.parametrize("error", [{"code": -32600, "message": f"key {KEY} is not valid"}, f"unknown project {KEY}"])
async def test_a_node_that_repeats_its_key_tells_it_to_nobody(place: str, error: object) -> None:
    async with wire() as server:
        server.says(web.json_response({"jsonrpc": "2.0", "id": 1, "error": error}))
        node = Node(CHAINS["base"], 0, server.url + place, request_seconds=5)
        with pytest.raises(ProviderError, match=r"\[key\]") as told:
            await node.call("eth_chainId", ())
        await node.close()
    assert KEY not in str(told.value)


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        (-32602, "Archive requests require a personal token. Get one at: https://a.b", Pruned),
        (-32701, "Please specify an address in your request", NeedsAddress),
        (-32600, "Must be authenticated!", Unauthorized),
    ],
)
async def test_only_a_refusal_that_names_no_other_cause_is_about_the_key(
    code: int, message: str, kind: type[Exception]
) -> None:
    async with wire() as server:
        error = {"code": code, "message": message}
        server.says(web.json_response({"jsonrpc": "2.0", "id": 1, "error": error}, status=403))
        node = Node(CHAINS["base"], 0, server.url, request_seconds=5)
        with pytest.raises(ProviderError) as told:
            await node.call("eth_getTransactionCount", ())
        await node.close()
    assert type(told.value) is kind


async def test_a_node_that_refuses_to_name_its_chain_is_not_shown_as_well() -> None:
    """Some nodes refuse a key, or a chain that the plan lacks, with HTTP 200 and an error of their own."""
    async with wire() as server:
        error = {"code": -32052, "message": "API key is not allowed to access blockchain"}
        server.says(web.json_response({"jsonrpc": "2.0", "id": 1, "error": error}))
        pool = NodePool({"base": [server.url]})
        provider_reports.read_off()
        with pytest.raises(RpcRefused):
            await pool.first("base", Node.head)
        await pool.close()
    assert [(one.provider, one.state) for one in provider_reports.read_off()] == [("base:0", provider_reports.CONFUSED)]
