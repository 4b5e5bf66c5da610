"""A short seed of what `make soak` does at length: everything goes wrong, and nobody loses what they hold."""

from pathlib import Path

import pytest

from tests.soak.chaos import Pace
from tests.soak.run import soak


@pytest.mark.parametrize("seed", [8])
async def test_whatever_fails_everybody_ends_with_what_the_chain_says(
    sandbox_url: str, short_dir: Path, seed: int
) -> None:
    pace = Pace(seconds=6, members=20, pause=0.2, fault=3, frozen=2)
    assert await soak(seed, sandbox_url, short_dir, pace, print) == []
