"""multicall.py (banteg) at 1,000 calls a request, its best setting here; it takes the other peers' arguments.

It runs in an environment of its own, so it imports nothing of ours.
"""

import asyncio
import hashlib
import json
import resource
import sys
import time

from multicall import Call, Multicall  # pyright: ignore[reportMissingImports]
from web3 import HTTPProvider, Web3

STEP = 1_000


def main() -> None:
    """Read the balances, and print a sample."""
    url, contracts, count = sys.argv[2:5]
    owners = ["0x" + hashlib.sha256(f"wallet {number}".encode()).hexdigest()[:40] for number in range(int(count))]
    client = Web3(HTTPProvider(url))

    def read(some: list[str]) -> int:
        calls = [
            Call(contract, ["balanceOf(address)(uint256)", owner], [((contract, owner), None)])
            for contract in contracts.split(",")
            for owner in some
        ]
        total = 0
        for start in range(0, len(calls), STEP):
            total += sum(Multicall(calls[start : start + STEP], _w3=client, gas_limit=None)().values())
        return total

    read(owners[:10])
    before, clock = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    total = read(owners)
    seconds, after = time.perf_counter() - clock, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    units = len(owners) * len(contracts.split(","))
    print(json.dumps({"seconds": seconds, "cpu": cpu, "units": units, "sum": total, "rss": after.ru_maxrss}))


if __name__ == "__main__":
    asyncio.set_event_loop(asyncio.new_event_loop())
    main()
