"""`make bench`: every benchmark in turn, then one table of the goals that they state, and whether each was met.

`ARGS="--quick"` takes fewer measurements, `ARGS="logs roles"` runs only these.
"""

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import attacks, crowd, follow, guilds, logs, roles, sweep, sweep_growth, web
from benchmarks.sizes import bot_processes, census, discord_limits, scale, strangers
from benchmarks.support import combined_reads, mixed_sweeps
from benchmarks.support.rounds import GOALS

Benchmark = Callable[[Sequence[str]], None]
BENCHMARKS: dict[str, Benchmark] = {
    "sweep": sweep.main, "pairs": combined_reads.main, "mixed": mixed_sweeps.main, "logs": logs.main,
    "follow": follow.main, "roles": roles.main, "growth": sweep_growth.main, "guilds": guilds.main,
    "limits": discord_limits.main, "web": web.main, "crowd": crowd.main, "attacks": attacks.main,
    "strangers": strangers.main, "processes": bot_processes.main, "census": census.main, "scale": scale.main,
}  # fmt: skip


def main() -> int:
    """Run the named benchmarks; return 1 when a goal was missed."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(BENCHMARKS)}; all when none is named")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, members, tokens")
    given = parser.parse_args()
    unknown = sorted(set(given.names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}")
    print(machine(), flush=True)
    for name in given.names or BENCHMARKS:
        BENCHMARKS[name](["--quick"] if given.quick else [])
    print("\nGoals\n\n| benchmark | what | this run | goal | |\n|---|---|---|---|---|")
    for one in GOALS:
        print(one.row)
    print(f"\n{machine()}")
    return 1 if any(one.value is not None and not one.met for one in GOALS) else 0


def machine() -> str:
    """Return the machine and time of this run, and how busy the machine is otherwise."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    return f"{when}, {os.cpu_count()} cores ({model}), Python {platform.python_version()}, load {load}"


if __name__ == "__main__":
    sys.exit(main())
