"""Reading balances, and the whole sweep with database and policy, beside other libraries on the same node."""

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from benchmarks.support.community import database
from benchmarks.support.install_peers import python_of
from benchmarks.support.nft_chain import COLLECTIONS, SUPPLY, NftChain, holder, nft_chain
from benchmarks.support.rounds import Method, Sample, goal, interleaved, options, prepared, ratio, show

HOLDERS = 10_000
READING, WHOLE = "reading balances", "the whole sweep"


@dataclass
class WholeSweep(Method):
    """The product's whole sweep, in a process that stays: the measured sweep is one in which nothing changed."""

    process: subprocess.Popen[str] | None = None
    counts: dict[str, Any] = field(default_factory=dict[str, Any])

    def run(self) -> None:
        """Run one sweep."""
        process = self.process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("go\n")
        process.stdin.flush()
        said = json.loads(process.stdout.readline())
        self.counts = said.pop("counts")
        self.samples.append(Sample(**said))


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = options("sweep", __doc__, quick="fewer rounds, members and tokens")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--members", type=int, help="members in the whole sweep")
    given = parser.parse_args(arguments)
    rounds = given.rounds or (2 if given.quick else 5)
    members = given.members or (10_000 if given.quick else 100_000)
    supply = 2_000 if given.quick else SUPPLY
    with nft_chain() as node:
        print("Minting the collections ...", file=sys.stderr)
        node.fill(HOLDERS, supply=supply)
        reading(node, rounds, supply)
        with database() as url, node.mining(), whole_process(url, node, members) as process:
            whole(node, process, rounds, members, supply)


def total(wallets: int, supply: int) -> int:
    """Return the sum of the balances of the first `wallets` wallets, computed from the chain's contents."""
    tokens = ((collection, token) for collection in range(COLLECTIONS) for token in range(supply))
    return sum(holder(collection, token, HOLDERS) < wallets for collection, token in tokens)


def ways(node: NftChain, name: str, command: Sequence[str], wallets: int, supply: int) -> Method:
    """Return a method that reads the balances of so many wallets."""
    arguments = [node.url, ",".join(node.contracts), str(wallets)]
    return Method(name, [*command, *arguments], total(wallets, supply))


def viem(node: NftChain, name: str, size: int, wallets: int, supply: int) -> Method:
    """Return viem's multicall with a batch size."""
    return ways(node, name, ["node", "benchmarks/peers/viem.mjs", str(size)], wallets, supply)


def reading(node: NftChain, rounds: int, supply: int) -> None:
    """Measure reading 10,000 wallets x 10 collections; methods that would take minutes read fewer wallets."""
    here = [sys.executable, "-m", "benchmarks.support.balance_method"]
    own = ways(node, "Holdfast", [*here, "ours"], 10_000, supply)
    fallback = ways(node, "Holdfast, node without state override (aggregate3)", [*here, "fallback"], 10_000, supply)
    floor = ways(node, "floor: the same loop over bare sockets", [*here, "floor"], 10_000, supply)
    default = viem(node, "viem multicall, default", 0, 1_000, supply)
    large = viem(node, "viem multicall, 36 kB batches", 36_000, 1_000, supply)
    other = [python_of("multicall"), "benchmarks/peers/multicall_py.py", "x"]
    banteg = ways(node, "multicall.py, 1,000 a request", other, 1_000, supply)
    one = ways(node, "web3.py, one by one", [*here, "web3"], 20, supply)
    many = ways(node, "AsyncWeb3, 20 at once", [*here, "asyncweb3"], 20, supply)
    methods = [own, floor, fallback, banteg, large, default, many, one]
    interleaved(methods, rounds, node.refresh)
    show("Reading balances, 10,000 wallets x 10 collections", "check", methods, own)
    print()
    for name, method, least in (
        ("viem, default", default, 50), ("viem, 36 kB batches", large, 30), ("multicall.py", banteg, 12),
    ):  # fmt: skip
        said = ratio(method, own)
        goal(READING, f"times faster than {name}", said and said[0], least=least)
    said = ratio(own, floor)
    goal(READING, "times the floor", said and said[0], most=1.5)
    said = ratio(default, fallback)
    goal(READING, "aggregate3: times faster than viem, default", said and said[0], least=10)


def whole_process(url: str, node: NftChain, members: int) -> AbstractContextManager["subprocess.Popen[str]"]:
    """The process that runs whole sweeps, once its people are there."""
    print(f"Settling {members:,} members ...", file=sys.stderr)
    return prepared("benchmarks.sizes.sweep_process", url, node.url, ",".join(node.contracts), str(members))


def whole(node: NftChain, process: "subprocess.Popen[str]", rounds: int, members: int, supply: int) -> None:
    """Measure a whole sweep without changes, beside viem's bare reading of the same kind of balances."""
    own = WholeSweep("Holdfast: the whole sweep, database and policy", [], process=process)
    default = viem(node, "viem multicall, default: the balances alone", 0, 1_000, supply)
    interleaved([own, default], rounds)
    show(f"The whole sweep, {members:,} members x {COLLECTIONS} rules, nothing changed", "check", [own, default], own)
    print()
    said = ratio(default, own)
    goal(WHOLE, "times faster than viem's bare multicall", said and said[0], least=5)
    goal(WHOLE, "database statements per 10,000 members", own.counts["statements"] / members * 10_000, most=60)
    goal(
        WHOLE,
        "requests to the node per 1,000 checks",
        own.counts["requests"] / (members * COLLECTIONS) * 1000,
        most=0.1,
    )
    print(f"  processor time a member: {own.counts['cpu']}")


if __name__ == "__main__":
    main(sys.argv[1:])
