"""Questions to real contracts: words, reverts and failures are distinguished, by the program and by batches alike."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from gateways.chains.catalogue import CHAINS
from gateways.evm.rpc.node import Node
from gateways.evm.tokens.one_word_calls import BATCH, Asker
from gateways.evm.tokens.one_word_program import MAGIC, Silence, call_data, read_answer
from gateways.transport.errors import ProviderConfused
from tests.gateways.evm_lab import COLLECTION, HOSTILE, Change, Front, address, anvil, deploy, without_override

COOL, OWNER = address(1), address(100)
EXPECTED = {
    "reverts": {Silence.REVERTED},
    "burns all its gas": {Silence.RAN_OUT},
    "never ends": {Silence.RAN_OUT},
    "returns nothing": {Silence.NONSENSE},
    "returns 31 bytes": {Silence.NONSENSE},
    "returns 60 kB": {Silence.NONSENSE},
    "returns 64 bytes": {Silence.NONSENSE},
    "reverts with 60 kB": {Silence.REVERTED},
    "reverts in a node's words": {Silence.REVERTED},
}


# Collections that answer known calls, and revert on others as contracts without such a token do.
ANSWERS_165 = """
    0 CALLDATALOAD 224 SHR 0x01ffc9a7 EQ ISZERO @other JUMPI
    1 0 MSTORE 32 0 RETURN
other:
"""
ENDINGS = {"REVERTED": "0 0 REVERT", "RAN_OUT": "INVALID", "NONSENSE": "STOP"}


def raw(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def balance_of(contract: str, owner: str = OWNER, padding: int = 0) -> tuple[bytes, bytes]:
    return raw(contract), bytes.fromhex("70a08231") + bytes(12) + raw(owner) + bytes(padding)


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    with anvil() as url:
        asyncio.run(deploy(url, COOL, COLLECTION, {int(OWNER, 16): 7}))
        for number, source in enumerate(HOSTILE.values()):
            asyncio.run(deploy(url, address(50 + number), source))
        yield url


@pytest.fixture
async def asker(end: Front) -> AsyncIterator[Asker]:
    async with AsyncExitStack() as stack:
        made = Node(CHAINS["base"], 0, end.url, request_seconds=5.0)
        stack.push_async_callback(made.close)
        yield Asker(made)


async def test_every_question_has_its_own_answer_whatever_its_neighbours_do(asker: Asker, end: Front) -> None:
    bad = [balance_of(address(50 + number)) for number in range(len(HOSTILE))]
    asked = [balance_of(COOL), *bad, balance_of(COOL, address(101)), balance_of(COOL, padding=32)]
    said = await asker.ask(await asker.node.head(), asked)
    assert (said[0], said[-2], said[-1]) == (7, 0, 7)
    assert dict(zip(HOSTILE, said[1:-2], strict=True)) == {kind: next(iter(only)) for kind, only in EXPECTED.items()}
    assert end.methods().count("eth_call") == 3, "two lengths, and what ran out of gas is asked once more"


async def test_batches_tell_the_same_but_hear_only_contracts_that_answer_what_is_known(
    asker: Asker, end: Front
) -> None:
    end.change = without_override
    asked = [balance_of(COOL), *(balance_of(address(50 + number)) for number in range(len(HOSTILE)))]
    said = await asker.ask(await asker.node.head(), asked)
    assert said[0] == 7
    assert set(said[1:]) == {Silence.NONSENSE}
    with pytest.raises(ProviderConfused):
        await asker.ask(await asker.node.head(), asked[1:])


async def test_a_batch_of_hostile_contracts_alone_spoils_no_other_batch(asker: Asker, end: Front) -> None:
    end.change = without_override
    hostile = [balance_of(address(50 + number)) for number in range(len(HOSTILE))]
    said = await asker.ask(await asker.node.head(), [*[balance_of(COOL)] * BATCH, *hostile])
    assert said == [*[7] * BATCH, *[Silence.NONSENSE] * len(hostile)]


@pytest.mark.parametrize("change", [None, without_override], ids=["program", "batches"])
async def test_a_halt_says_no_less_and_no_more_in_batches_than_in_the_program(
    node: str, asker: Asker, end: Front, change: Change | None
) -> None:
    for number, ending in enumerate(ENDINGS.values()):
        await deploy(node, address(80 + number), ANSWERS_165 + ending)
    end.change = change
    asked = [balance_of(address(80 + number)) for number in range(len(ENDINGS))]
    said = await asker.ask(await asker.node.head(), asked)
    assert said == [Silence[name] for name in ENDINGS]


async def test_many_questions_go_in_few_calls_and_a_contract_that_burns_gas_is_left_out(
    asker: Asker, end: Front
) -> None:
    burner = address(50 + list(HOSTILE).index("burns all its gas"))
    asked = [balance_of(COOL)] * 3000 + [balance_of(burner)] * 3000
    said = await asker.ask(await asker.node.head(), asked)
    assert said == [7] * 3000 + [Silence.RAN_OUT] * 3000
    assert end.methods().count("eth_call") < 20


@pytest.mark.parametrize("result", ["0x", None, "0xzz", "0x" + "00" * 192, "0x" + "00" * 225])
async def test_a_node_that_answers_something_else_is_not_believed(asker: Asker, end: Front, result: Any) -> None:
    end.change = lambda call, true: {**true, "result": result} if call["method"] == "eth_call" else true
    with pytest.raises(ProviderConfused):
        await asker.ask(await asker.node.head(), [balance_of(COOL)])


def test_an_answer_must_carry_every_mark() -> None:
    data = call_data(bytes(26), 1000, [(b"\1" * 20, b"\2" * 36), (b"\3" * 20, b"\4" * 36)])
    word = int.from_bytes(data[:32], "big")

    def answer(*, mark: int = word ^ MAGIC, chain: int = 1, gas: int = 40, stop: int = 88, rows: bytes = b"") -> bytes:
        words = (mark, chain, 1_700_000_000, 50, gas, stop)
        return b"".join(part.to_bytes(32, "big") for part in words) + (
            rows or bytes((1,)) + (9).to_bytes(32, "big") + bytes(33)
        )

    assert read_answer("node", answer(), data, 1).said == (9,)
    wrong = [
        answer(mark=MAGIC),
        answer(chain=10),
        answer(gas=0),
        answer(gas=50),
        answer(stop=89),
        answer(stop=144),
        answer(stop=32),
        answer(stop=200),
        answer()[:-1],
        answer(rows=bytes((7,)) + bytes(65)),
        b"",
        bytes(258),
    ]
    for one in wrong:
        with pytest.raises(ProviderConfused):
            read_answer("node", one, data, 1)
