"""A node with one collection that has a long history: `python -m benchmarks.sizes.history_node TRANSFERS PORT`.

Every block has 500 transfers. The first `TOKENS` mint, the later ones pass the tokens on in turn. It answers what a
count asks, and refuses more than 10,000 logs as nodes do.
"""

import sys
import time
from collections.abc import Iterable
from functools import cache
from typing import Any

import orjson
from aiohttp import web

from gateways.evm.tokens.event_topics import TRANSFER

CONTRACT = "0x" + "c0" * 20
TOKENS, HOLDERS = 200_000, 50_000
A_BLOCK = 500
MOST_LOGS = 10_000


def owner(token: int, turn: int) -> int:
    """Return the number of the holder after so many transfers of the token."""
    return (token + 7_919 * turn) % HOLDERS


def holders(transfers: int) -> int:
    """Return how many addresses have a token after the last transfer."""
    moved = {token: transfers // TOKENS + (token < transfers % TOKENS) for token in range(TOKENS)}
    return len({owner(token, times - 1) for token, times in moved.items() if times})


def block_hash(number: int) -> str:
    """Return the hash of a block."""
    return f"0x{number + 1:064x}"


@cache
def _logs_of(block: int, transfers: int) -> bytes:
    """Return the logs of a block as JSON, separated by commas."""
    return b",".join(_log(place, block) for place in range((block - 1) * A_BLOCK, min(block * A_BLOCK, transfers)))


def _log(place: int, block: int) -> bytes:
    turn, token = divmod(place, TOKENS)
    sender = f"0x{1 + owner(token, turn - 1):064x}" if turn else "0x" + 64 * "0"
    return orjson.dumps(
        {
            "address": CONTRACT, "blockNumber": hex(block), "blockHash": block_hash(block), "data": "0x",
            "logIndex": hex(place % A_BLOCK), "transactionIndex": hex(place % A_BLOCK), "removed": False,
            "transactionHash": f"0x{place:064x}",
            "topics": [TRANSFER, sender, f"0x{1 + owner(token, turn):064x}", f"0x{token:064x}"],
        }
    )  # fmt: skip


class HistoryNode:
    """The chain, up to the block of the last transfer."""

    def __init__(self, transfers: int) -> None:
        self._transfers = transfers
        self._newest = -(-transfers // A_BLOCK)

    async def ask(self, request: web.Request) -> web.Response:
        """Answer a JSON-RPC call, or a batch of them."""
        asked = orjson.loads(await request.read())
        some = asked if isinstance(asked, list) else [asked]
        answers = [self._answer(one) for one in some]
        body = b"[" + b",".join(answers) + b"]" if isinstance(asked, list) else answers[0]
        return web.Response(body=body, content_type="application/json")

    def _answer(self, asked: dict[str, Any]) -> bytes:
        method, parameters, called = asked["method"], asked.get("params") or [], asked["id"]
        if method == "eth_getLogs":
            return self._logs(parameters[0], called)
        if method == "eth_getBlockByNumber":
            named = parameters[0]
            number = int(named, 16) if named.startswith("0x") else self._newest
            result: Any = {
                "number": hex(number),
                "hash": block_hash(number),
                "timestamp": hex(int(time.time()) - self._newest + number),
            }
        elif method in {"eth_blockNumber", "eth_chainId"}:
            result = hex(self._newest if method == "eth_blockNumber" else 8453)
        else:
            return _refused(called, -32601, f"the method {method} does not exist")
        return orjson.dumps({"jsonrpc": "2.0", "id": called, "result": result})

    def _logs(self, where: dict[str, Any], called: Any) -> bytes:
        first, last = max(1, int(where["fromBlock"], 16)), min(self._newest, int(where["toBlock"], 16))
        if (last - first + 1) * A_BLOCK > MOST_LOGS:
            return _refused(called, -32005, f"query returned more than {MOST_LOGS} results")
        parts: Iterable[bytes] = (_logs_of(block, self._transfers) for block in range(first, last + 1))
        return b'{"jsonrpc":"2.0","id":%s,"result":[%s]}' % (orjson.dumps(called), b",".join(parts))


def _refused(called: Any, code: int, message: str) -> bytes:
    return orjson.dumps({"jsonrpc": "2.0", "id": called, "error": {"code": code, "message": message}})


def main() -> None:
    """Serve until killed."""
    app = web.Application(client_max_size=2**24)
    app.router.add_post("/", HistoryNode(int(sys.argv[1])).ask)
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[2]), print=None, access_log=None)


if __name__ == "__main__":
    main()
