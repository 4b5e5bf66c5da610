"""View calls to real contracts through a real node: by the program and by batches, whatever the contracts do."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from gateways.chains.catalogue import CHAINS
from gateways.chains.read_point import NEWEST, ReadPoint
from gateways.chains.view_sheet import ViewQuestion, ViewSheet
from gateways.evm.calls import compiled
from gateways.evm.calls.view_reader import REASONS, RESTS, ViewReader
from gateways.evm.calls.views_program import HEADER, MAGIC, CopiedAnswer, call_data, read_answer
from gateways.evm.rpc.node import Node
from gateways.evm.tokens.one_word_program import Silence
from gateways.transport.errors import ProviderConfused, ProviderError
from locales.stored_texts import said
from sandbox.chains.abi import ARTEFACTS
from tests.gateways.evm_lab import COLLECTION, HOSTILE, Front, address, anvil, deploy, rpc, without_override

STAKING, LIST, STRUCT, HUGE, NOSY, DEAR, MOODY = (address(number) for number in range(1, 8))
OWNERS = [address(100 + number) for number in range(40)]
FIRST, SECOND, OTHER = OWNERS[:3]

# A list whose length is in the slot of the address, and whose numbers are their own positions.
A_LIST = """
    32 0 MSTORE 4 CALLDATALOAD SLOAD DUP1 32 MSTORE 0
more:
    DUP2 DUP2 LT ISZERO @done JUMPI DUP1 DUP1 32 MUL 64 ADD MSTORE 1 ADD @more JUMP
done:
    POP 32 MUL 64 ADD 0 RETURN
"""
# (the slot of the address, the second argument, true).
A_STRUCT = "4 CALLDATALOAD SLOAD 0 MSTORE 36 CALLDATALOAD 32 MSTORE 1 64 MSTORE 96 0 RETURN"
A_MEGABYTE = "32 0 MSTORE 32766 32 MSTORE 1048576 0 RETURN"
# The origin and the caller of the call, as two addresses.
WHO_ASKS = "ORIGIN 0 MSTORE CALLER 32 MSTORE 64 0 RETURN"
# The slot of the address, after a loop that uses more gas than a question is first given.
DEAR_NUMBER = """
    9000
again:
    1 SWAP1 SUB DUP1 @again JUMPI POP
    4 CALLDATALOAD SLOAD 0 MSTORE 32 0 RETURN
"""
# An answer for one wallet, and an endless loop for every other.
A_MOODY_ONE = f"4 CALLDATALOAD {OTHER} EQ @good JUMPI again: @again JUMP good: 7 0 MSTORE 32 0 RETURN"


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    async def made(url: str) -> None:
        slots = {int(FIRST, 16): 7, int(SECOND, 16): 300}
        for where, source in ((STAKING, COLLECTION), (LIST, A_LIST), (STRUCT, A_STRUCT), (DEAR, DEAR_NUMBER)):
            await deploy(url, where, source, slots)
        for where, source in ((HUGE, A_MEGABYTE), (NOSY, WHO_ASKS), (MOODY, A_MOODY_ONE)):
            await deploy(url, where, source)
        for number, source in enumerate(HOSTILE.values()):
            await deploy(url, address(50 + number), source)
        await rpc(url, "anvil_setCode", CHAINS["base"].multicall3, ARTEFACTS["Multicall3"]["runtime"])
        await rpc(url, "anvil_mine", "0x1")

    with anvil() as url:
        asyncio.run(made(url))
        yield url


@pytest.fixture
async def reader(end: Front) -> AsyncIterator[ViewReader]:
    async with AsyncExitStack() as stack:
        made = Node(CHAINS["base"], 0, end.url, request_seconds=5.0)
        stack.push_async_callback(made.close)
        yield ViewReader(made)


def number(contract: str = STAKING) -> ViewQuestion:
    return compiled.question(contract, "stakedOf(address,uint256) view returns (uint256)", ["{wallet}", "5"], "")


def listed(contract: str = LIST, path: str = "length") -> ViewQuestion:
    return compiled.question(contract, "stakedTokens(address) view returns (uint256[])", ["{wallet}"], path)


def field(path: str) -> ViewQuestion:
    return compiled.question(
        STRUCT, "positionOf(address,uint64) view returns ((uint256,uint64,bool))", ["{wallet}", "9"], path
    )


async def read(reader: ViewReader, question: ViewQuestion, owners: list[str] = OWNERS) -> ViewSheet:
    return await reader.read(question, owners, NEWEST, asyncio.get_running_loop().time() + 20)


def no_multicall(call: dict[str, Any], true: dict[str, Any]) -> dict[str, Any]:
    to = call["params"][0].get("to", "") if call["method"] == "eth_call" else ""
    if to == CHAINS["base"].multicall3:
        return {"jsonrpc": "2.0", "id": call["id"], "result": "0x"}
    return without_override(call, true)


@pytest.fixture(params=["program", "multicall", "batches"])
def way(request: pytest.FixtureRequest, end: Front) -> str:
    if request.param != "program":
        end.change = without_override if request.param == "multicall" else no_multicall
    return str(request.param)


async def test_a_number_of_each_wallet_with_a_constant_beside(reader: ViewReader, way: str) -> None:
    sheet = await read(reader, number())
    assert sheet.values == dict.fromkeys(OWNERS, 0) | {FIRST: 7, SECOND: 300}
    assert (sheet.unsure, sheet.question) == ({}, number())


async def test_the_length_and_the_elements_of_a_list(reader: ViewReader, way: str) -> None:
    assert (await read(reader, listed())).values == dict.fromkeys(OWNERS, 0) | {FIRST: 7, SECOND: 300}
    sheet = await read(reader, listed(path="200"))
    assert sheet.values == {SECOND: 200}
    assert set(sheet.unsure) == set(OWNERS) - {SECOND}


async def test_the_fields_of_a_struct(reader: ViewReader, way: str) -> None:
    assert (await read(reader, field("0"), [FIRST])).values == {FIRST: 7}
    assert (await read(reader, field("1"), [FIRST])).values == {FIRST: 9}
    assert (await read(reader, field("2"), [FIRST])).values == {FIRST: 1}


@pytest.mark.parametrize("kind", HOSTILE)
async def test_what_a_hostile_contract_does_is_never_a_value(reader: ViewReader, way: str, kind: str) -> None:
    sheet = await read(reader, number(address(50 + list(HOSTILE).index(kind))), OWNERS[:3])
    assert sheet.values == {}
    assert set(sheet.unsure) == set(OWNERS[:3])


async def test_a_megabyte_and_an_address_without_a_contract_are_never_a_value(reader: ViewReader, way: str) -> None:
    sheet = await read(reader, listed(HUGE), OWNERS[:3])
    assert sheet.values == {}
    assert set(map(said, sheet.unsure.values())) == {"the contract's answer is larger than 65,536 bytes"}
    nowhere = await read(reader, number(address(999)), OWNERS[:3])
    assert nowhere.values == {}
    assert set(nowhere.unsure.values()) == {"the contract gave no answer"}


async def test_nobody_in_particular_asks(reader: ViewReader) -> None:
    question = compiled.question(NOSY, "f(address) view returns (address,address)", ["{wallet}"], "0")
    sheet = await read(reader, question, [FIRST])
    assert sheet.values == {FIRST: "0x484f4c44464153540000000000000000000b00b6"}
    caller = compiled.question(NOSY, "f(address) view returns (address,address)", ["{wallet}"], "1")
    assert (await read(reader, caller, [FIRST])).values[FIRST] != FIRST


async def test_a_dear_function_is_given_more_gas_and_begins_with_it_the_next_time(
    reader: ViewReader, end: Front
) -> None:
    expected = dict.fromkeys(OWNERS, 0) | {FIRST: 7, SECOND: 300}
    assert (await read(reader, number(DEAR))).values == expected
    asked = end.methods().count("eth_call")
    assert (await read(reader, number(DEAR))).values == expected
    assert end.methods().count("eth_call") - asked == 1


async def test_a_contract_that_answers_for_some_spoils_only_the_others(reader: ViewReader, way: str) -> None:
    sheet = await read(reader, number(MOODY))
    assert sheet.values == {OTHER: 7}
    assert set(sheet.unsure.values()) == {REASONS[Silence.RAN_OUT]}
    assert (await read(reader, number())).values[FIRST] == 7


async def test_a_thousand_wallets_take_one_call_and_many_take_few(reader: ViewReader, end: Front) -> None:
    owners = [address(1_000 + at) for at in range(1_000)]
    assert len((await read(reader, number(), owners)).values) == 1_000
    assert end.methods().count("eth_call") == 1
    many = [address(1_000 + at) for at in range(20_000)]
    assert len((await read(reader, number(), many)).values) == 20_000
    assert end.methods().count("eth_call") - 1 <= 20


async def test_without_override_a_thousand_wallets_take_one_call_of_multicall(reader: ViewReader, end: Front) -> None:
    end.change = without_override
    owners = [address(1_000 + at) for at in range(1_000)]
    assert len((await read(reader, number(), owners)).values) == 1_000
    asked = [call for call in end.calls if call["method"] == "eth_call" and len(call["params"]) == 2]
    assert len(asked) == 1
    before = end.requests
    burner = number(address(50 + list(HOSTILE).index("burns all its gas")))
    sheet = await read(reader, burner, owners)
    assert sheet.values == {}
    assert set(sheet.unsure) == set(owners)
    assert end.requests - before < 20


async def test_a_contract_that_burns_gas_is_soon_left_out_and_paused(reader: ViewReader, end: Front) -> None:
    burner = number(address(50 + list(HOSTILE).index("burns all its gas")))
    many = [address(1_000 + at) for at in range(5_000)]
    sheet = await read(reader, burner, many)
    assert set(sheet.unsure.values()) == {REASONS[Silence.RAN_OUT]}
    asked = end.methods().count("eth_call")
    assert asked < 20
    again = await read(reader, burner, many)
    assert set(again.unsure.values()) == {RESTS}
    assert end.methods().count("eth_call") == asked


@pytest.mark.parametrize(
    "change",
    [
        lambda call, true: {**true, "result": "0x" + "00" * 32},
        lambda call, true: {**true, "result": "0x" + "0" * (len(true.get("result", "0x")) - 2)},
        lambda call, true: {**true, "result": None},
        lambda call, true: {**true, "result": "0xzz"},
        lambda call, true: without_override(call, {**true, "result": "0x" + "00" * 32}),
        lambda call, true: without_override(call, {**true, "result": "0x"}),
    ],
)
async def test_a_node_that_answers_something_else_is_not_believed(
    reader: ViewReader, end: Front, change: Callable[[dict[str, Any], dict[str, Any]], Any]
) -> None:
    end.change = lambda call, true: change(call, true) if call["method"] == "eth_call" else true
    with pytest.raises(ProviderError):
        await read(reader, number(), [FIRST])


async def test_the_settled_block_is_an_earlier_one(reader: ViewReader, node: str) -> None:
    await rpc(node, "anvil_mine", "0x40")
    newest = await read(reader, number(), [FIRST])
    until = asyncio.get_running_loop().time() + 20
    settled = await reader.read(number(), [FIRST], ReadPoint(settled=True), until)
    assert settled.block == newest.block - CHAINS["base"].settled_after


def test_an_answer_must_carry_every_mark() -> None:
    owners = [b"\1" * 20, b"\2" * 20]
    data = call_data(bytes(18), b"\3" * 20, b"\4" * 36, [4], owners, gas=1_000, most_bytes=64)
    first, end = int.from_bytes(data[:32], "big"), len(data)

    def answer(
        *, mark: int = first ^ MAGIC, chain: int = 1, gas: int = 40, stop: int = end - 20, rows: bytes | None = None
    ) -> bytes:
        words = (mark, chain, 1_700_000_000, 50, gas, stop)
        row = bytes([1]) + (100).to_bytes(4, "big") + b"\7" * 64
        return b"".join(one.to_bytes(32, "big") for one in words) + (row if rows is None else rows)

    assert read_answer("node", answer(), data, 2, 1).said == (CopiedAnswer(b"\7" * 64, 100),)
    wrong = [
        answer(mark=MAGIC), answer(chain=10), answer(gas=0), answer(gas=50), answer(stop=end - 19),
        answer(stop=end), answer(stop=end + 20), answer(stop=end - 60), answer()[:-1], answer() + b"\0",
        answer(rows=bytes([2]) + bytes(4)), answer(rows=bytes([1])), answer(rows=b""), b"", bytes(HEADER),
    ]  # fmt: skip
    for one in wrong:
        with pytest.raises(ProviderConfused):
            read_answer("node", one, data, 2, 1)
