"""Balances of many servers in one question: requests, bytes and processor time by the number of servers.

Each server has WALLETS wallets and COLLECTIONS collections of its own, so 10,000 servers are 400,000 balances; one
server has as many pairs as a thousand together.
"""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter, process_time

import orjson

from benchmarks.support.nft_chain import CHAIN, READING_GAS, NftChain, nft_chain, wallet
from benchmarks.support.rounds import goal, options
from gateways.chains.balance_sheet import BalanceSheet, Segment
from gateways.evm.client import EvmChains
from gateways.evm.rpc.node import Decode, Node
from gateways.evm.rpc.pool import NodePool

WALLETS, COLLECTIONS = 4, 10
SERVERS = (1, 100, 1_000, 10_000)
NAME = "balances of many servers"
# balanceOf(address) is the storage slot of that address, as a mapping's would be.
CODE = "0x6004355460005260206000f3"


@dataclass
class NodeTraffic:
    """The traffic to the node."""

    requests: int = 0
    bytes: int = 0


@contextmanager
def counted() -> Iterator[NodeTraffic]:
    """Count all requests to nodes and the bytes of their bodies."""
    seen, post = NodeTraffic(), Node.post

    async def counting(self: Node, body: bytes, decode: Decode = orjson.loads) -> object:
        seen.requests += 1
        seen.bytes += len(body)
        return await post(self, body, decode)

    Node.post = counting
    try:
        yield seen
    finally:
        Node.post = post


def own_collection(server: int, number: int) -> str:
    """Return the address of one of a server's own collections."""
    return f"0x{0xC0DE << 64 | server << 16 | number:040x}"


def deploy(node: NftChain, servers: int) -> None:
    """Put code at all collections' addresses, and set the usual gas limit of a call."""
    for server in range(servers):
        node.batch("anvil_setCode", [(own_collection(server, number), CODE) for number in range(COLLECTIONS)])
    node.rpc("evm_setBlockGasLimit", hex(READING_GAS))
    node.refresh()


def segments(servers: int) -> list[Segment]:
    """Return the questions of so many servers; a single server asks about as many pairs as a thousand."""
    if servers == 1:
        contracts = tuple(own_collection(0, number) for number in range(COLLECTIONS))
        return [Segment(contracts, tuple(wallet(number) for number in range(1_000 * WALLETS)))]
    return [
        Segment(
            tuple(own_collection(server, number) for number in range(COLLECTIONS)),
            tuple(wallet(server * WALLETS + number) for number in range(WALLETS)),
        )
        for server in range(servers)
    ]


async def measure(node: NftChain, servers: int, rounds: int) -> float:
    """Print the cost of a question of so many servers; return its requests for 1,000 balances."""
    chains = EvmChains(NodePool({CHAIN: [node.url]}, deadline=600, request_seconds=120))
    asked, best = segments(servers), (float("inf"), float("inf"))
    pairs = sum(len(one.contracts) * len(one.owners) for one in asked)
    try:
        sheets: list[BalanceSheet] = []
        with counted() as seen:
            for number in range(rounds + 1):
                node.refresh()
                if number == 1:
                    # The first round learns how much the node takes in a call.
                    seen.requests = seen.bytes = 0
                start, cpu = perf_counter(), process_time()
                sheets = await chains.balances(CHAIN, asked)
                if number:
                    best = min(best, (process_time() - cpu, perf_counter() - start))
        unknown = sum(sheet.unknown(one) for sheet, asker in zip(sheets, asked, strict=True) for one in asker.contracts)
        if unknown:
            raise SystemExit(f"{unknown} balances are unknown")
    finally:
        await chains.close()
    each, share = seen.requests / rounds, 1 / pairs
    requests = each * share * 1_000
    size, cpu, clock = seen.bytes / rounds * share, best[0] * share * 1e6, best[1] * share * 1e6
    print(f"| {servers:,} | {pairs:,} | {each:g} | {requests:.3f} | {size:.1f} | {cpu:.1f} | {clock:.1f} |", flush=True)
    return requests


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    given = options("support.combined_reads", __doc__, quick="fewer rounds and servers").parse_args(arguments)
    counts = SERVERS[:3] if given.quick else SERVERS
    with nft_chain() as node:
        print("Deploying the collections ...", file=sys.stderr)
        deploy(node, max(counts))
        print(f"Balances of servers with {WALLETS} wallets and {COLLECTIONS} collections each\n\n| servers | balances |"
              " requests | for 1,000 balances | bytes sent a balance | processor, µs a balance | clock, µs a balance |"
              "\n|---|---|---|---|---|---|---|")  # fmt: skip
        said = {count: asyncio.run(measure(node, count, 2 if given.quick else 4)) for count in counts}
    print()
    goal(NAME, "requests for 1,000 balances more than one server's, 1,000 servers", said[1_000] - said[1], most=0.2)


if __name__ == "__main__":
    main(sys.argv[1:])
