"""Random histories of one server through the real ledger, role writer and PostgreSQL, with a simulated Discord.

Admins make, change, pause, delete and restore rules, replace and delete roles, protect, undo, answer the breaker and
move the server here; members buy, sell, leave, are screened, prove, swap and hide their wallets and are forgotten;
other bots move the same roles; Discord refuses, fails, or answers late; events are lost or late; processes stop in the
middle, end, and take over from each other; hours pass, and the clock is set back. No removal may be sent to Discord for
a member who has held since before the reading, or while a pause, a protection, a move, a truce, the breaker or an
admin's decision keeps the role, and no role is given twice. Once the trouble ends, everybody who holds has the role,
and nobody else keeps it without a reason.

With one seed a history takes the same steps each time, because steps run one after the other and wait for events. The
real time between two jumps of the simulated time is undone at the next jump; only if a machine stops for several
seconds may a pause end earlier, which is allowed at any time.
"""

import os
from collections.abc import Sequence

import pytest

from tests.services.roles.histories import admins, check, members, processes
from tests.services.roles.histories.history import History, Step

HISTORIES = max(1, int(os.environ.get("HISTORIES", "400")) // 100)
"""Number of histories; `make fuzz` runs many more. Each takes as long as a hundred of those that need no database."""
FIRST = int(os.environ.get("FIRST_SEED", "0"))
"""The first seed; each history has the next one."""
LENGTH = 100
"""Steps before the trouble ends."""
DAY = 90_000
CALM = (200, 200, DAY, *[200] * 6, DAY, *[200] * 4)
"""Seconds that pass between the calm hours after a history. A day and a bit ends truces and what counts for a day."""
LEAST = 4
"""How many of these always pass, so that the longest pauses are over when everything is compared."""
STEPS: Sequence[tuple[int, Step]] = (*members.STEPS, *admins.STEPS, *processes.STEPS)


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("seed", range(FIRST, FIRST + HISTORIES))
async def test_no_holder_loses_a_role_and_the_others_lose_it(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(seed, check.removal)
    try:
        await history.begin(monkeypatch)
        await happens(history)
    except BaseException as fault:
        fault.add_note("\n".join([f"seed {seed}", *history.lines]))
        raise
    finally:
        await processes.stop(history)


async def happens(history: History) -> None:
    """Let the history happen, and check each step and the end."""
    weights, steps = zip(*STEPS, strict=True)
    await members.begin(history)
    await processes.work(history, 0)
    for _ in range(LENGTH):
        history.step += 1
        (step,) = history.random.choices(steps, weights)
        history.say(step.__name__.replace("_", " "))
        await step(history)
        assert not history.wrong, history.wrong
    history.step += 1
    await processes.settle(history)
    faults: list[str] = []
    for place, seconds in enumerate(CALM, 1):
        history.step += 1
        await processes.work(history, seconds)
        assert not history.wrong, history.wrong
        faults = await check.end(history)
        if not faults and place >= LEAST:
            break
    assert not faults, faults
