"""How the whole round grows with the members: `python -m benchmarks.growth [--quick] [--million]`.

10,000 and 100,000 members with ten rules each, nothing changed; a million takes a quarter of an hour to settle and
minutes a round, and so is measured only when asked for, and once.
"""

import argparse
import sys
from collections.abc import Sequence
from statistics import median

from benchmarks.lab import COLLECTIONS, Lab, lab
from benchmarks.rounds import goal
from benchmarks.sweep import HOLDERS, WholeRound, whole_process
from benchmarks.town import database

GROWTH = "growth"
MILLION = 1_000_000


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2,000 and 20,000 members")
    parser.add_argument("--million", action="store_true", help="a million members too")
    given = parser.parse_args(arguments)
    sizes = [2_000, 20_000] if given.quick else [10_000, 100_000]
    if given.million:
        sizes.append(MILLION)
    with lab() as node:
        print("Minting the collections ...", file=sys.stderr)
        node.fill(HOLDERS, supply=2_000)
        with node.mining():
            found = [measured(node, members) for members in sizes]
    print("\nThe whole round by members, 10 rules each, nothing changed\n")
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
        text = f"{members:,} members take so many times as long as a tenth of them"
        goal(GROWTH, text, seconds(more) / seconds(less), most=11)
    goal(GROWTH, f"memory at {sizes[-1]:,} members, MB", memory(found[-1]), most=400)


def measured(node: Lab, members: int) -> WholeRound:
    """Three rounds with so many members; one with a million."""
    with database() as url, whole_process(url, node, members) as process:
        own = WholeRound(f"{members:,} members", [], process=process)
        for _ in range(3 if members < MILLION else 1):
            own.run()
    return own


def seconds(own: WholeRound) -> float:
    """Its median."""
    return median(sample.seconds for sample in own.samples)


def memory(own: WholeRound) -> int:
    """Megabytes of its process at the most."""
    return max(sample.rss for sample in own.samples) // 1024


if __name__ == "__main__":
    main(sys.argv[1:])
