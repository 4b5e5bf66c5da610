"""How the sweep grows with the members: `python -m benchmarks.sweep_growth [--quick] [--million]`.

10,000 and 100,000 members with ten rules each, nothing changed, each with its own database and process; a
million takes minutes to set up and minutes a sweep, and so is measured only on request.
"""

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from statistics import median

from benchmarks.support.community import database
from benchmarks.support.nft_chain import COLLECTIONS, NftChain, nft_chain
from benchmarks.support.rounds import goal, interleaved, options, ratio
from benchmarks.sweep import HOLDERS, WholeSweep, whole_process

GROWTH = "growth"
MILLION = 1_000_000
ROUNDS = 3


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = options("sweep_growth", __doc__, quick="2,000 and 20,000 members")
    parser.add_argument("--million", action="store_true", help="a million members too")
    given = parser.parse_args(arguments)
    sizes = [2_000, 20_000] if given.quick else [10_000, 100_000]
    if given.million:
        sizes.append(MILLION)
    with nft_chain() as node:
        print("Minting the collections ...", file=sys.stderr)
        node.fill(HOLDERS, supply=2_000)
        with node.mining(), ExitStack() as running:
            found = [settled(node, members, running) for members in sizes]
            interleaved(found, ROUNDS)
    print("\nThe whole sweep by members, 10 rules each, nothing changed\n")
    print("| members | seconds, median (min-max) | µs a check | memory, MB | statements | requests |")
    print("|---|---|---|---|---|---|")
    for members, own in zip(sizes, found, strict=True):
        times = [sample.seconds for sample in own.samples]
        each = median(times) / members / COLLECTIONS * 1e6
        print(
            f"| {members:,} | {median(times):.2f} ({min(times):.2f}-{max(times):.2f}) | {each:.1f} | {memory(own)} "
            f"| {own.counts['statements']} | {own.counts['requests']} |"
        )
    print()
    for less, more, members in zip(found, found[1:], sizes[1:], strict=False):
        said = ratio(more, less)
        text = f"{members:,} members take so many times as long as a tenth of them"
        goal(GROWTH, text, said and said[0] * 10, most=11)
    goal(GROWTH, f"memory at {sizes[-1]:,} members, MB", memory(found[-1]), most=400)


def settled(node: NftChain, members: int, running: ExitStack) -> WholeSweep:
    """Start sweeps of so many members who have their roles, in a process that ends with `running`."""
    url = running.enter_context(database())
    process = running.enter_context(whole_process(url, node, members))
    return WholeSweep(f"{members:,} members", [], process=process)


def memory(own: WholeSweep) -> int:
    """Return the peak memory of its process in megabytes."""
    return max(sample.rss for sample in own.samples) // 1024


if __name__ == "__main__":
    main(sys.argv[1:])
