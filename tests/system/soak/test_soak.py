"""A short seed of what `make soak` does at length: everything goes wrong, and nobody loses a role that they earned.

The world is smaller than there: ten members instead of fifty, though with the same sixteen rules on four chains;
twenty-six deeds instead of minutes of them, among them each kind of deed, a restart of the database and the end of
each process; faults of two seconds. The processes are the same: bot, two of jobs, and the web, apart on one
PostgreSQL; each seed has a world of its own.
"""

from pathlib import Path

from tests.system.soak.chaos import Pace
from tests.system.soak.run import soak

SEEDS = (5,)
SMALL = Pace(seconds=0, deeds=26, members=10, pause=0.2, fault=2, frozen=2)


async def test_whatever_fails_everybody_ends_with_what_the_chain_says(sandbox_url: str, short_dir: Path) -> None:
    assert await soak(SEEDS, sandbox_url, short_dir, SMALL, print) == []
