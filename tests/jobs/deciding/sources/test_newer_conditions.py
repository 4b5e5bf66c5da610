"""A rule of a type that only a newer version knows is unknown, and stops neither the members nor the followers."""

import asyncio
from typing import Any

import pytest

from jobs.following.follower_turns import FollowerTurns
from jobs.reconciler import Reconciler
from tests.jobs.town import Town
from tests.jobs.watching import grants


@pytest.mark.parametrize(
    "newer",
    [
        {"type": "newer_list", "list": "abc"},
        {"type": "newer", "chain": "base", "contract": "everything"},
        {"type": "newer", "chain": "base", "contract": "0x" + "5e" * 20, "more": 1},
        {"type": "basic", "chain": "base", "contract": "0x" + "5e" * 20, "minTokens": 1, "newer": True},
        {"newer": [{"type": "basic", "chain": "base", "contract": "0x" + "5e" * 20}]},
    ],
)
async def test_the_other_rules_go_on(town: Town, newer: dict[str, Any]) -> None:
    await town.rule("Holder")
    other = await town.rule("Holder")
    await town.buys("carol")
    await town.prove("carol")
    await town.change(other, expression=newer)
    turn = await FollowerTurns("me").of("base")
    assert turn is not None
    await Reconciler(asyncio.Event()).once()
    assert [one.state for one in await grants(town)] == ["giving"]
