"""A member whose wallet appears in the logs all the time gets and loses roles like anybody else."""

import pytest

from models import transaction
from services.core import queue
from services.engine import read_and_confirm
from services.engine.ledger import MOST_OVERTAKEN
from services.engine.reconcile_outcome import BatchOutcome
from tests.jobs.conftest import Engine
from tests.jobs.town import Town, until
from tests.jobs.watching import given, taken

CAROL = "carol"


@pytest.fixture
def looks(town: Town, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of members in each reconcile, where a sighting overtakes every reconcile."""
    decide_cases, seen = read_and_confirm.decide_cases, list[int]()

    async def and_meanwhile_a_token_moves(*arguments: object, **more: object) -> BatchOutcome:
        done = await decide_cases(*arguments, **more)  # pyright: ignore[reportArgumentType]
        seen.append(len(done.outcomes))
        async with transaction() as db:
            queue.mark_holders(db, "base", [town.wallet(CAROL)], queue.SEEN)
        return done

    monkeypatch.setattr(read_and_confirm, "decide_cases", and_meanwhile_a_token_moves)
    return seen


async def test_who_buys_gets_the_role_although_no_look_ends_before_the_next_sighting(
    town: Town, engine: Engine, looks: list[int]
) -> None:
    await town.rule("Holder")
    await town.buys(CAROL)
    await town.prove(CAROL)
    async with engine():
        await given(town)
    assert looks


async def test_who_sells_loses_the_role_although_no_look_ends_before_the_next_sighting(
    town: Town, engine: Engine, looks: list[int]
) -> None:
    await town.rule("Holder")
    token = await town.buys(CAROL)
    await town.prove(CAROL)
    async with engine():
        await given(town)
        await town.sells(token)
        before = len(looks)
        await town.look()
        await taken(town)
    assert len(looks) - before > MOST_OVERTAKEN


async def test_a_slow_look_that_was_overtaken_takes_nothing(
    town: Town, engine: Engine, looks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    decide_cases = read_and_confirm.decide_cases

    async def slow(*arguments: object, **more: object) -> BatchOutcome:
        done = await decide_cases(*arguments, **more)  # pyright: ignore[reportArgumentType]
        # Long enough for a purchase to be made and settled meanwhile.
        done.began -= 60
        return done

    monkeypatch.setattr(read_and_confirm, "decide_cases", slow)
    await town.rule("Holder")
    token = await town.buys(CAROL)
    await town.prove(CAROL)
    async with engine():
        await given(town)
        await town.sells(token)
        before = len(looks)
        await town.look()

        async def overtaken_often_enough() -> bool:
            return len(looks) - before > MOST_OVERTAKEN + 3

        await until(overtaken_often_enough)
        assert await town.has(CAROL, "Holder")
