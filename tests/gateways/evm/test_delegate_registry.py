"""The vaults that delegate to a wallet, as the sandbox's registry and hand-made answers give them."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web

from gateways.chains.read_point import ReadPoint
from gateways.evm.delegate_registry import DelegateRegistry, RegisteredDelegation, own_rights
from gateways.evm.rpc.node import Head, Node
from gateways.evm.rpc.pool import NodePool
from gateways.transport.errors import ProviderError
from tests.gateways.clockwork import run
from tests.gateways.wire import Wire

CHAIN, BARE = "optimism", "abstract"
RIGHTS = own_rights("Holdfast")
HOT = "0x" + "11" * 20


def fresh() -> str:
    return "0x" + secrets.token_hex(20)


class Control:
    """The sandbox's control, with which a test makes things happen."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url, self._session = url, session

    async def delegate(self, vault: str, to: str, chain: str = CHAIN, **more: str) -> None:
        await self.tell(f"chains/{chain}/delegate", vault=vault, to=to, **more)

    async def tell(self, path: str, **body: Any) -> Any:
        async with self._session.post(f"{self.url}/control/{path}", json=body) as answer:
            assert answer.status < 300, await answer.text()
            return await answer.json()

    async def world(self) -> dict[str, Any]:
        async with self._session.get(f"{self.url}/control/world") as answer:
            return await answer.json()


@pytest.fixture
async def control(sandbox_url: str) -> AsyncIterator[Control]:
    async with aiohttp.ClientSession() as session:
        yield Control(sandbox_url, session)


@pytest.fixture
async def registry(sandbox_url: str) -> AsyncIterator[DelegateRegistry]:
    urls = {chain: [f"{sandbox_url}/{front}/{chain}" for front in ("rpc", "rpc2")] for chain in (CHAIN, BARE)}
    pool = NodePool(urls, request_seconds=2.0, deadline=5.0)
    yield DelegateRegistry(pool, RIGHTS)
    await pool.close()


async def test_everything_a_contract_and_single_tokens_can_be_delegated(
    registry: DelegateRegistry, control: Control
) -> None:
    collections = (await control.world())["chains"][CHAIN]["collections"]
    contracts = {one["standard"]: one["contract"] for one in collections}
    plain, many = contracts["ERC721"], contracts["ERC1155"]
    vault, hot, cold = fresh(), fresh(), fresh()
    await control.delegate(vault, hot)
    await control.delegate(vault, hot, contract=plain)
    await control.delegate(vault, hot, contract=plain, token_id="7")
    await control.delegate(vault, hot, contract=many, token_id="2")
    sheet = await registry.incoming(CHAIN, [hot.upper().replace("0X", "0x"), cold])
    whole, contract, token, amount = sorted(sheet.found[hot], key=lambda one: (one.kind, one.token_id != "7"))
    assert whole == RegisteredDelegation("all", hot, vault, "", "", None)
    assert contract == RegisteredDelegation("contract", hot, vault, plain, "", None)
    assert token == RegisteredDelegation("token", hot, vault, plain, "7", None)
    assert (amount.contract, amount.token_id) == (many, "2")
    assert (amount.amount or 0) > 1
    assert (sheet.found[cold], sheet.unsure) == ((), {})
    assert sheet.block > 0


async def test_only_empty_and_our_own_rights_count(registry: DelegateRegistry, control: Control) -> None:
    vault, other, hot = fresh(), fresh(), fresh()
    await control.delegate(vault, hot, rights="0x" + RIGHTS.hex())
    await control.delegate(other, hot, rights="0x" + b"somebody else".hex())
    sheet = await registry.incoming(CHAIN, [hot])
    assert [one.vault for one in sheet.found[hot]] == [vault]


async def test_a_vault_does_not_speak_for_its_delegate(registry: DelegateRegistry, control: Control) -> None:
    vault, hot = fresh(), fresh()
    await control.delegate(vault, hot)
    assert (await registry.incoming(CHAIN, [vault])).found[vault] == ()


async def test_abstract_has_a_registry_of_its_own(registry: DelegateRegistry, control: Control) -> None:
    vault, hot = fresh(), fresh()
    await control.delegate(vault, hot, chain=BARE)
    assert [one.vault for one in (await registry.incoming(BARE, [hot])).found[hot]] == [vault]


@pytest.mark.parametrize("kind", ["down", "429", "500", "empty", "zero", "malformed"])
async def test_a_fault_is_an_error_and_never_nobody(registry: DelegateRegistry, control: Control, kind: str) -> None:
    vault, hot = fresh(), fresh()
    await control.delegate(vault, hot)
    try:
        await control.tell("faults", target=f"rpc:{CHAIN}", kind=kind, seconds=60)
        with pytest.raises(ProviderError):
            await registry.incoming(CHAIN, [hot], at=ReadPoint(endpoint=0))
        assert (await registry.incoming(CHAIN, [hot])).found[hot][0].vault == vault
    finally:
        await control.tell("faults", target=f"rpc:{CHAIN}", kind="500", seconds=0.000_001)


def words(*values: int | str) -> str:
    return "0x" + "".join(f"{one:064x}" if isinstance(one, int) else one.removeprefix("0x").zfill(64) for one in values)


def answering(*answers: Any, first: int = 0) -> web.Response:
    """Return the response to a batch whose ids begin at `first`: its results, in which a dictionary is an error."""
    items = [
        {"jsonrpc": "2.0", "id": number, ("error" if isinstance(one, dict) else "result"): one}
        for number, one in enumerate(answers, first)
    ]
    return web.Response(body=orjson.dumps(items), content_type="application/json")


@pytest.fixture
async def hand_made(server: Wire, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DelegateRegistry]:
    """A registry whose node gives the test's answers, with a head that the test need not give."""
    from models import now

    async def head(_: Node, not_before_block: int = 0) -> Head:
        return Head(100, now())

    monkeypatch.setattr(Node, "head", head)
    pool = NodePool({"base": [server.url]})
    yield DelegateRegistry(pool, RIGHTS)
    await pool.close()


NONE = words(32, 0)
ALL = words(32, 1, 1, HOT, "0x" + "22" * 20, 0, 0, 0, 0)


@pytest.mark.parametrize(
    "said",
    [
        "0x",
        words(0, 0),
        words(32, 1),
        words(32, 2, 1, HOT, "0x" + "22" * 20, 0, 0, 0, 0),
        words(32, 1, 1, "0x" + "33" * 20, "0x" + "22" * 20, 0, 0, 0, 0),
        words(32, 1, 9, HOT, "0x" + "22" * 20, 0, 0, 0, 0),
        NONE + "00",
    ],
    ids=["nothing", "zeros", "too short", "too few", "another delegate", "an unknown kind", "a byte too many"],
)
async def test_what_is_no_list_of_the_delegate_is_refused(hand_made: DelegateRegistry, server: Wire, said: str) -> None:
    server.says(answering(said), answering("0x", "0x", first=1))
    with pytest.raises(ProviderError):
        await hand_made.incoming("base", [HOT])


async def test_the_real_registry_says_no_amount_where_there_is_none(hand_made: DelegateRegistry, server: Wire) -> None:
    server.says(answering(ALL))
    assert (await hand_made.incoming("base", [HOT])).found[HOT] == (
        RegisteredDelegation("all", HOT, "0x" + "22" * 20, "", "", None),
    )


async def test_a_chain_without_a_registry_has_no_delegations(hand_made: DelegateRegistry, server: Wire) -> None:
    server.says(answering("0x"), answering("0x", "0x6001", first=1))
    assert (await hand_made.incoming("base", [HOT])).found[HOT] == ()


async def test_a_delegate_with_too_many_delegations_spoils_nobody_else(
    hand_made: DelegateRegistry, server: Wire
) -> None:
    other = "0x" + "44" * 20
    server.says(answering({"code": -32000, "message": "out of gas"}, NONE))
    sheet = await hand_made.incoming("base", [HOT, other])
    assert dict(sheet.found) == {other: ()}
    assert "gas" in sheet.unsure[HOT]


async def test_a_delegate_that_is_missing_in_the_answer_is_never_one_without_vaults(
    hand_made: DelegateRegistry, server: Wire
) -> None:
    server.says(answering(NONE))
    with pytest.raises(ProviderError):
        await hand_made.incoming("base", [HOT, "0x" + "44" * 20])


async def test_an_item_that_is_missing_in_a_batch_is_a_fault_of_that_item_alone(server: Wire) -> None:
    item = {"jsonrpc": "2.0", "id": 1, "result": "0x7"}
    server.says(web.Response(body=orjson.dumps([item]), content_type="application/json"))
    pool = NodePool({"base": [server.url]})
    (node,) = pool.all()
    first, second = await node.batch([("eth_chainId", ()), ("eth_chainId", ())])
    await pool.close()
    assert isinstance(first, ProviderError)
    assert second == "0x7"


async def test_an_answer_that_is_too_large_is_asked_for_in_halves(hand_made: DelegateRegistry, server: Wire) -> None:
    too_large = web.Response(status=413)
    server.says(too_large, too_large, answering(NONE, first=3))
    other = "0x" + "44" * 20
    sheet = await hand_made.incoming("base", [HOT, other])
    assert (set(sheet.unsure), set(sheet.found)) == ({HOT}, {other})


async def test_a_node_in_trouble_passes_the_question_on(hand_made: DelegateRegistry, server: Wire) -> None:
    server.says(answering({"code": 429, "message": "Too many requests"}))
    with pytest.raises(ProviderError):
        async with asyncio.timeout(5):
            await hand_made.incoming("base", [HOT])


def test_delegates_for_whom_there_is_no_time_spoil_nobody_else_and_have_their_turn_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A node that takes few calls at a time never answers about all members of a large server in one question."""

    async def head(_: Node, not_before_block: int = 0) -> Head:
        return Head(100, datetime.now(UTC))

    async def batch(_: Node, calls: Sequence[tuple[str, Sequence[object]]]) -> list[object]:
        await asyncio.sleep(4.0)
        return [NONE] * len(calls)

    monkeypatch.setattr(Node, "head", head)
    monkeypatch.setattr(Node, "batch", batch)
    everybody = [f"0x{number:040x}" for number in range(1_000)]

    async def read() -> int:
        pool, left, reads = NodePool({"base": ["http://slow.test"]}), list(everybody), 0
        while left:
            sheet = await DelegateRegistry(pool, RIGHTS).incoming("base", left)
            assert sheet.found.keys() | sheet.unsure.keys() == set(left)
            left, reads = [one for one in left if one in sheet.unsure], reads + 1
        await pool.close()
        return reads

    assert run(read()) == 7
