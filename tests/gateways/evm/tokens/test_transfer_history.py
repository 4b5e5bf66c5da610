"""Every transfer of a contract: in slices that nodes accept, confirmed by a second node, and never a wrong list."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from gateways.evm.rpc.pool import NodePool
from gateways.evm.tokens import transfer_history
from gateways.evm.tokens.event_topics import CONSECUTIVE, TRANSFER, TRANSFER_BATCH, TRANSFER_SINGLE
from gateways.evm.tokens.transfer_history import COIN, HistorySlice, TokenMove, TransferHistory
from gateways.transport.errors import ProviderConfused, ProviderError
from tests.gateways.evm.logs import ALICE, BOB, CONTRACT, topic
from tests.gateways.evm.logs import log as plain_log
from tests.gateways.wire import Wire

NOBODY = "0x" + 40 * "0"
Change = Callable[[list[dict[str, Any]]], Any]


def number(value: int) -> str:
    return f"0x{value:064x}"


def log(block: int, index: int, *topics: str, data: str = "0x") -> dict[str, Any]:
    return {**plain_log(*topics, block=block), "logIndex": hex(index), "data": data, "removed": False}


def minted(block: int, index: int = 0) -> dict[str, Any]:
    return log(block, index, TRANSFER, topic(NOBODY), topic(ALICE), number(block))


class Ledger:
    """A node with these logs, which gives at most so many blocks and so many logs in one answer."""

    def __init__(self, logs: list[dict[str, Any]], blocks: int = 1 << 60, most: int = 1 << 60) -> None:
        self.logs, self.blocks, self.most = logs, blocks, most
        self.given: list[tuple[int, int]] = []
        self.change: Change = lambda found: found

    def answer(self, body: str) -> web.Response:
        asked = json.loads(body)
        first, last = (int(asked["params"][0][name], 16) for name in ("fromBlock", "toBlock"))
        found = [one for one in self.logs if first <= int(one["blockNumber"], 16) <= last]
        said: dict[str, Any] = {"jsonrpc": "2.0", "id": asked["id"]}
        if last - first + 1 > self.blocks:
            said["error"] = {"code": -32602, "message": f"up to a {self.blocks} block range"}
        elif len(found) > self.most:
            said["error"] = {"code": -32602, "message": f"query returned more than {self.most} results"}
        else:
            self.given.append((first, last))
            said["result"] = self.change(found)
        return web.json_response(said)


def serve(server: Wire, *nodes: Ledger) -> NodePool:
    def answer() -> web.Response:
        return nodes[int(server.asked[-1].path.rpartition("/")[2])].answer(server.asked[-1].body)

    server.says(answer)
    return NodePool({"base": [f"{server.url.rstrip('/')}/{index}" for index in range(len(nodes))]})


async def whole(history: TransferHistory, last: int, by: tuple[int, ...] = (0,)) -> list[HistorySlice]:
    slices, start = list[HistorySlice](), 0
    while start <= last:
        slices.append(await history.confirmed("base", CONTRACT, start, last, by))
        start = slices[-1].last + 1
    return slices


@pytest.mark.parametrize(("blocks", "most"), [(1 << 60, 1 << 60), (37, 1 << 60), (1 << 60, 5), (1, 1)])
async def test_the_whole_history_comes_in_slices_that_the_node_accepts(server: Wire, blocks: int, most: int) -> None:
    node = Ledger([minted(block) for block in range(0, 300, 3)], blocks, most)
    pool = serve(server, node)
    slices = await whole(TransferHistory(pool), 299)
    await pool.close()
    assert [move.first_id for one in slices for move in one.moves] == list(range(0, 300, 3))
    assert [block for first, last in node.given for block in range(first, last + 1)] == list(range(300))
    assert max(len(one.moves) for one in slices) <= most


async def test_every_event_of_the_standards_is_read(server: Wire) -> None:
    pair = "0x" + "".join(f"{word:064x}" for word in (64, 160, 2, 5, 6, 2, 50, 60))
    who = topic(ALICE), topic(BOB)
    node = Ledger([
        log(4, 1, TRANSFER_BATCH, topic(CONTRACT), *who, data=pair),
        log(4, 0, TRANSFER_SINGLE, topic(CONTRACT), *who, data="0x" + f"{7:064x}" + f"{8:064x}"),
        log(3, 0, CONSECUTIVE, number(10), *who, data=number(1 << 200)),
        log(2, 0, TRANSFER, *who, number((1 << 256) - 1)),
    ])  # fmt: skip
    pool = serve(server, node)
    found = await TransferHistory(pool).read("base", CONTRACT.upper().replace("X", "x"), 0, 9, 0)
    await pool.close()
    top = (1 << 256) - 1
    assert found == HistorySlice(
        [
            TokenMove(2, top, top, 1, ALICE, BOB), TokenMove(3, 10, 1 << 200, 1, ALICE, BOB),
            TokenMove(4, 7, 7, 8, ALICE, BOB), TokenMove(4, 5, 5, 50, ALICE, BOB), TokenMove(4, 6, 6, 60, ALICE, BOB),
        ],
        9, [],
    )  # fmt: skip


async def test_amounts_of_a_coin_have_no_token(server: Wire) -> None:
    pool = serve(server, Ledger([log(5, 0, TRANSFER, topic(NOBODY), topic(BOB), data=number(10**30))]))
    found = await TransferHistory(pool).read("base", CONTRACT, 0, 9, 0)
    await pool.close()
    assert found == HistorySlice([TokenMove(5, COIN, COIN, 10**30, NOBODY, BOB)], 9, [])


@pytest.mark.parametrize(
    "odd",
    [
        log(5, 0, TRANSFER),
        log(5, 0, TRANSFER, topic(ALICE), data=number(7)),
        log(5, 0, TRANSFER, topic(ALICE), topic(BOB)),
        log(5, 0, TRANSFER, topic(ALICE), topic(BOB), data=number(7) + number(8)[2:]),
        log(5, 0, TRANSFER_SINGLE, topic(CONTRACT), topic(ALICE), topic(BOB), data=number(7)),
        log(5, 0, TRANSFER_BATCH, topic(CONTRACT), topic(ALICE), topic(BOB), data=number(1 << 255) + 64 * "f"),
        log(5, 0, TRANSFER_BATCH, topic(CONTRACT), topic(ALICE), topic(BOB)),
        log(5, 0, CONSECUTIVE, number(10), topic(ALICE), topic(BOB), data=number(9)),
    ],
)
async def test_a_transfer_that_names_no_token_is_counted_as_unread(server: Wire, odd: dict[str, Any]) -> None:
    pool = serve(server, Ledger([minted(4), odd]))
    found = await TransferHistory(pool).read("base", CONTRACT, 0, 9, 0)
    await pool.close()
    assert (len(found.moves), found.unread) == (1, 1)


@pytest.mark.parametrize(
    "change",
    [
        lambda _: None,
        lambda _: {},
        lambda _: ["0x"],
        lambda found: [*found, found[0]],
        lambda found: [found[0] | {"address": ALICE}],
        lambda found: [found[0] | {"blockNumber": "0x63"}],
        lambda found: [found[0] | {"removed": True}],
        lambda found: [found[0] | {"topics": [number(1), *found[0]["topics"][1:]]}],
        lambda found: [found[0] | {"topics": []}],
        lambda found: [found[0] | {"logIndex": None}],
    ],
)
async def test_what_only_a_node_gets_wrong_is_a_fault(server: Wire, change: Change) -> None:
    node = Ledger([minted(4)])
    node.change = change
    pool = serve(server, node)
    with pytest.raises(ProviderConfused):
        await TransferHistory(pool).read("base", CONTRACT, 0, 9, 0)
    await pool.close()


@pytest.mark.parametrize(
    "omit", [lambda _: [], lambda found: found[1:], lambda found: [*found, log(9, 9, *found[0]["topics"])]]
)
@pytest.mark.parametrize("liar", [0, 1])
async def test_a_second_node_that_says_otherwise_is_a_fault(server: Wire, omit: Change, liar: int) -> None:
    nodes = [Ledger([minted(block) for block in range(10)], blocks) for blocks in (1 << 60, 3)]
    nodes[liar].change = omit
    pool = serve(server, *nodes)
    with pytest.raises(ProviderConfused):
        await whole(TransferHistory(pool), 9, (0, 1))
    await pool.close()


async def test_nodes_with_different_limits_confirm_each_other(server: Wire) -> None:
    logs = [minted(block, index) for block in range(40) for index in range(2)]
    pool = serve(server, Ledger(logs, 16), Ledger(logs, 1 << 60, 7))
    slices = await whole(TransferHistory(pool), 39, (0, 1))
    await pool.close()
    assert Counter(move.block for one in slices for move in one.moves) == dict.fromkeys(range(40), 2)


async def test_a_slice_ends_where_a_node_with_a_small_limit_has_confirmed_it_in_time(
    server: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer_history, "CONFIRMED_SECONDS", 0.0)
    logs = [minted(block) for block in range(0, 40, 5)]
    limited = Ledger(logs, 10)
    pool = serve(server, Ledger(logs), limited)
    slices = await whole(TransferHistory(pool), 39, (0, 1))
    await pool.close()
    assert [(len(one.moves), one.last) for one in slices] == [(2, 9), (2, 19), (2, 29), (2, 39)]
    assert limited.given == [(0, 9), (10, 19), (20, 29), (30, 39)]


async def test_a_slice_with_transfers_that_name_no_token_ends_in_time_too(
    server: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer_history, "CONFIRMED_SECONDS", 0.0)
    logs = [minted(4), log(5, 0, TRANSFER), log(25, 0, TRANSFER), log(25, 1, TRANSFER)]
    limited = Ledger(logs, 10)
    pool = serve(server, Ledger(logs), limited)
    first = await TransferHistory(pool).confirmed("base", CONTRACT, 0, 39, (0, 1))
    assert (len(first.moves), first.unread, first.last, limited.given) == (1, 1, 9, [(0, 9)])
    slices = await whole(TransferHistory(pool), 39, (0, 1))
    await pool.close()
    assert [(one.unread, one.last) for one in slices] == [(1, 9), (0, 19), (2, 29), (0, 39)]


async def test_nodes_that_place_an_unread_transfer_differently_contradict_each_other(server: Wire) -> None:
    nodes = [Ledger([log(block, 0, TRANSFER)]) for block in (5, 6)]
    pool = serve(server, *nodes)
    with pytest.raises(ProviderConfused, match="differ"):
        await TransferHistory(pool).confirmed("base", CONTRACT, 0, 39, (0, 1))
    await pool.close()


async def test_a_node_that_fails_is_never_an_empty_slice(server: Wire) -> None:
    server.says(web.json_response({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "internal"}}))
    pool = NodePool({"base": [server.url]})
    with pytest.raises(ProviderError):
        await TransferHistory(pool).read("base", CONTRACT, 0, 9, 0)
    await pool.close()
    assert len(server.asked) == 1
