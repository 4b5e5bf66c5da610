"""Reading transfer logs, per log, beside web3.py and viem on the same node: `python -m benchmarks.logs [--quick]`.

Alone, `python -m benchmarks.logs METHOD URL CONTRACTS FIRST LAST` runs one way once over the blocks from FIRST to LAST
and prints a Sample: its unit is a log, its sum that of the receivers' last four digits, read as hexadecimal.
"""

import asyncio
import sys
import urllib.request
from collections.abc import Sequence
from typing import cast

import orjson

from benchmarks.support.nft_chain import CHAIN, MOVES_A_TRANSACTION, SUPPLY, NftChain, holder, nft_chain, wallet
from benchmarks.support.rounds import Measured, Method, goal, interleaved, options, ratio, show
from gateways.evm.log_decoding import Transfer, decode_logs, read_logs
from gateways.evm.rpc.pool import NodePool
from gateways.evm.tokens.event_topics import TRANSFER
from gateways.evm.transfer_logs import TransferLogs

HOLDERS = 10_000
LOGS = "transfer logs"
EVENT = [
    {"name": "Transfer", "type": "event", "anonymous": False, "inputs": [
        {"name": name, "type": kind, "indexed": True}
        for name, kind in (("from", "address"), ("to", "address"), ("tokenId", "uint256"))
    ]}
]  # fmt: skip


def ours(url: str, contracts: list[str], first: int, last: int) -> None:
    """Read logs over the wire as the follower does, one block at a time."""

    async def run() -> None:
        pool = NodePool({CHAIN: [url]}, deadline=600, request_seconds=120)
        transfers = TransferLogs(pool)
        await transfers.of_contracts(CHAIN, contracts, last, last, 0)
        count = total = 0
        with Measured() as time:
            for block in range(first, last + 1):
                found = (await transfers.of_contracts(CHAIN, contracts, block, block, 0)).transfers
                count, total = count + len(found), total + sum_of(found)
        await pool.close()
        time.tell(count, total)

    asyncio.run(run())


def parser(url: str, contracts: list[str], first: int, last: int) -> None:
    """Parse the node's raw bytes to transfers with the product's own parser."""
    bodies = [body(url, contracts, block) for block in range(first, last + 1)]
    parse(bodies[-1], last)
    count = 0
    with Measured() as time:
        for block, said in enumerate(bodies, start=first):
            count += len(parse(said, block))
    # Adding up is not the parser's work.
    time.tell(count, sum(sum_of(parse(said, block)) for block, said in enumerate(bodies, start=first)))


def parse(said: bytes, block: int) -> list[Transfer]:
    """Return the transfers of a node's answer about one block, as `TransferLogs` parses it."""
    answer = cast("dict[str, object]", decode_logs(said))
    return read_logs("the node", answer["result"], block, block)


def sum_of(found: Sequence[Transfer]) -> int:
    """Return the sum that compares the methods."""
    return sum(int(one.receiver[-4:], 16) for one in found)


def body(url: str, contracts: list[str], block: int) -> bytes:
    """Return the node's answer about the logs of a block."""
    where = {"address": contracts, "topics": [TRANSFER], "fromBlock": hex(block), "toBlock": hex(block)}
    asked = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_getLogs", "params": [where]})
    with urllib.request.urlopen(urllib.request.Request(url, asked, {"Content-Type": "application/json"})) as answer:
        return bytes(answer.read())


def web3_events(url: str, contracts: list[str], first: int, last: int) -> None:
    """Decode the contract's event with web3.py."""
    from web3 import HTTPProvider, Web3

    client = Web3(HTTPProvider(url, cache_allowed_requests=True))
    made = [client.eth.contract(address=client.to_checksum_address(one), abi=EVENT) for one in contracts]
    made[0].events.Transfer().get_logs(from_block=first, to_block=first)
    count = total = 0
    with Measured() as time:
        for contract in made:
            for block in range(first, last + 1):
                found = contract.events.Transfer().get_logs(from_block=block, to_block=block)
                count += len(found)
                total += sum(int(one["args"]["to"][-4:], 16) for one in found)
    time.tell(count, total)


METHODS = {"ours": ours, "parser": parser, "web3": web3_events}


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    given = options("logs", __doc__, quick="fewer rounds and tokens").parse_args(arguments)
    rounds, supply = (2, 4_000) if given.quick else (5, SUPPLY)
    with nft_chain() as node:
        print("Minting two collections ...", file=sys.stderr)
        node.fill(HOLDERS, collections=2, supply=supply)
        measure(node, rounds, supply)


def measure(node: NftChain, rounds: int, supply: int) -> None:
    """Measure every method over the blocks in which the chain's tokens were minted."""
    first, last = blocks(node)

    def way(name: str, command: Sequence[str], until: int = last) -> Method:
        arguments = [node.url, ",".join(node.contracts), str(first), str(until)]
        return Method(name, [*command, *arguments], expected(supply, whole=until == last))

    here = [sys.executable, "-m", "benchmarks.logs"]
    own = way("Holdfast, over the wire", [*here, "ours"])
    alone = way("Holdfast, the parser alone", [*here, "parser"])
    viem = way("viem getLogs", ["node", "benchmarks/peers/viem_logs.mjs"], first)
    web3 = way("web3.py, the contract's event", [*here, "web3"], first)
    methods = [own, alone, viem, web3]
    interleaved(methods, rounds)
    show(f"Reading {2 * supply:,} transfer logs, {MOVES_A_TRANSACTION:,} a block", "log", methods, own)
    print()
    cpu = sorted(sample.cpu_each for sample in alone.samples)
    goal(LOGS, "µs of our CPU a log in the parser", cpu[len(cpu) // 2] if cpu else None, most=3)
    for peer, least in ((web3, 20), (viem, 5)):
        said = ratio(peer, own)
        goal(LOGS, f"times faster than {peer.name}", said and said[0], least=least)


def blocks(node: NftChain) -> tuple[int, int]:
    """Return the first and the last block with a transfer."""
    found = [
        int(one["blockNumber"], 16)
        for one in node.rpc("eth_getLogs", {"address": node.contracts, "topics": [TRANSFER], "fromBlock": "0x0"})
    ]
    return min(found), max(found)


def expected(supply: int, *, whole: bool) -> int:
    """Return the sum over all logs, or over those of the first block alone, computed from the chain's contents."""
    tokens = (
        [(collection, token) for collection in range(2) for token in range(supply)]
        if whole
        else [(0, token) for token in range(min(supply, MOVES_A_TRANSACTION))]
    )
    return sum(int(wallet(holder(collection, token, HOLDERS))[-4:], 16) for collection, token in tokens)


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in METHODS:
        METHODS[sys.argv[1]](sys.argv[2], sys.argv[3].split(","), int(sys.argv[4]), int(sys.argv[5]))
    else:
        main(sys.argv[1:])
