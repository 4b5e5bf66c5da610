"""Learned limits of nodes: readers record them, and readers that start later begin with them."""

import json

import pytest
from aiohttp import web

from gateways.evm.rpc import node_limits
from gateways.evm.rpc.node_limits import NodeLimits, digest, forget_stored, known, learn, news, note
from gateways.evm.rpc.pool import NodePool
from gateways.evm.transfer_logs import TransferLogs
from tests.gateways.wire import Wire

URL, CONTRACT = "https://node.example/v2/secret", "0x" + "77" * 20


class Plan:
    """A node that gives logs of so many blocks, and accepts batches of so many calls."""

    def __init__(self, server: Wire, blocks: int, calls: int, status: int = 200) -> None:
        self.blocks, self.calls, self.status = blocks, calls, status
        self.spans, self.sizes, self.refused = list[int](), list[int](), 0
        self._server = server
        server.says(self._answer)

    def _answer(self) -> web.Response:
        asked = json.loads(self._server.asked[-1].body)
        if isinstance(asked, list):
            self.sizes.append(len(asked))
            if len(asked) > self.calls:
                self.refused += 1
                return web.json_response({"id": None, "error": {"code": -32014, "message": "batch too large"}})
            return web.json_response([{"jsonrpc": "2.0", "id": one["id"], "result": "0x1"} for one in asked])
        if asked["method"] != "eth_getLogs":
            return web.json_response({"jsonrpc": "2.0", "id": asked["id"], "result": "0x1"})
        first, last = (int(asked["params"][0][name], 16) for name in ("fromBlock", "toBlock"))
        self.spans.append(last - first + 1)
        if last - first + 1 > self.blocks:
            self.refused += 1
            error = {"code": -32602, "message": f"query exceeds max block range {self.blocks}"}
            return web.json_response({"jsonrpc": "2.0", "id": asked["id"], "error": error}, status=self.status)
        return web.json_response({"jsonrpc": "2.0", "id": asked["id"], "result": []})


async def used(url: str, blocks: int = 300, calls: int = 20) -> None:
    """Read logs and send a batch with a new process's readers."""
    pool = NodePool({"base": [url]})
    await TransferLogs(pool).of_contracts("base", [CONTRACT], 1, blocks, 0)
    await pool.all()[0].batch([("eth_chainId", ())] * calls)
    await pool.close()


async def test_a_limit_that_comes_with_http_413_is_learnt_from_its_words(server: Wire) -> None:
    """QuickNode refuses too many blocks in this way: https://github.com/OffchainLabs/arbitrum-sdk/issues/609."""
    plan = Plan(server, blocks=37, calls=20, status=413)
    await used(server.url)
    assert (plan.spans[:2], known(server.url).log_blocks) == ([300, 37], 37)


async def test_what_one_reader_was_refused_the_next_one_does_not_ask(server: Wire) -> None:
    plan = Plan(server, blocks=37, calls=5)
    await used(server.url)
    assert plan.refused > 1
    assert (known(server.url).log_blocks, known(server.url).batch) == (37, 5)
    plan.refused = 0
    plan.spans.clear()
    plan.sizes.clear()
    await used(server.url)
    assert plan.refused == 0
    assert (plan.spans[0], plan.sizes[0]) == (37, 5)


async def test_a_node_that_gives_less_than_it_did_is_asked_for_less(server: Wire) -> None:
    note(server.url, log_blocks=200, batch=10)
    plan = Plan(server, blocks=10, calls=2)
    await used(server.url)
    assert (known(server.url).log_blocks, known(server.url).batch) == (10, 2)
    assert plan.spans[-1] <= 10


async def test_what_is_given_without_a_limit_is_noted_as_none(server: Wire) -> None:
    Plan(server, blocks=10_000, calls=100)
    await used(server.url)
    assert (known(server.url).log_blocks, known(server.url).batch) == (None, None)


async def test_a_node_that_wants_an_address_is_known_for_it(server: Wire) -> None:
    error = {"code": -32701, "message": "Please specify an address in your request"}
    server.says(lambda: web.json_response({"jsonrpc": "2.0", "id": 1, "error": error}))
    pool = NodePool({"base": [server.url]})
    with pytest.raises(Exception, match="address"):
        await TransferLogs(pool).of_wallets("base", ["0x" + "aa" * 20], 1, 5, 0)
    await pool.close()
    assert known(server.url).logs_need_address is True


def test_news_are_what_nobody_else_keeps_yet() -> None:
    note(URL, batch=3)
    note(URL, batch=3)
    first = news()
    assert first == {digest(URL): {"batch": 3}}
    note(URL, batch=2, finalized=False)
    forget_stored(first)
    assert news() == {digest(URL): {"batch": 2, "finalized": False}}
    forget_stored(news())
    assert news() == {}
    note(URL, batch=2)
    assert news() == {}
    assert "secret" not in digest(URL)


def test_what_others_found_is_taken_over_but_for_what_was_just_noted_here() -> None:
    note(URL, batch=3)
    learn({digest(URL): NodeLimits(batch=7, states=127), digest("https://x"): NodeLimits(finalized=False)})
    assert known(URL) == NodeLimits(batch=3, states=127)
    assert known("https://x").finalized is False
    node_limits.forget()
    assert known(URL) == NodeLimits()


@pytest.mark.parametrize("turn", [1, 2])
def test_a_test_does_not_know_what_an_earlier_one_found_out(turn: int) -> None:
    assert known(URL) == NodeLimits(), f"in turn {turn}"
    note(URL, batch=1)
