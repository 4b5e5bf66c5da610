"""A rule that only a newer version knows in full changes nothing, and stops neither the members nor the followers."""

import asyncio
from typing import Any

import pytest

from jobs.following.follower_turns import FollowerTurns
from jobs.reconciler import Reconciler
from models import now
from tests.jobs.conftest import Engine
from tests.jobs.town import Town
from tests.jobs.watching import given, grants, looked_at, taken


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


@pytest.mark.parametrize("deleted", [False, True])
async def test_a_role_stays_while_only_a_newer_version_knows_when_it_is_taken(
    town: Town, engine: Engine, deleted: bool
) -> None:
    token = await town.buys("carol")
    rule = await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
        ended = now() if deleted else None
        await town.change(rule, removal_mode="when an admin says so", deleted_at=ended)
        await town.sells(token)
        for _ in range(2):
            await looked_at(town)
        assert [one.state for one in await grants(town)] == ["held"]
        assert await town.has("carol", "Holder")
        await town.change(rule, removal_mode="now")
        await looked_at(town)
        await taken(town)
