"""How often a screen retries before it gives up."""

from contextlib import nullcontext

import pytest

from services.core.errors import HoldfastError, NotConnected, NotSignedIn, ProviderUnavailable
from state.core import retry
from state.core.retry import ask
from state.core.timing import QUERY_ATTEMPTS


class Asked:
    """A call that fails so many times, then answers."""

    def __init__(self, *faults: Exception) -> None:
        self.faults, self.times = list(faults), 0

    async def read(self, db: object) -> str:
        self.times += 1
        if self.faults:
            raise self.faults.pop(0)
        return "answer"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "RETRY_SECONDS", 0)
    monkeypatch.setattr(retry, "transaction", nullcontext)


async def test_what_is_answered_is_asked_for_once() -> None:
    asked = Asked()
    assert await ask(asked.read) == "answer"
    assert asked.times == 1


@pytest.mark.parametrize("fault", [OSError("the database is away"), ProviderUnavailable("Discord does not answer")])
async def test_what_fails_is_asked_for_again_while_attempts_are_under_two(fault: Exception) -> None:
    asked = Asked(fault)
    assert await ask(asked.read) == "answer"
    given_up = Asked(*[fault] * 9)
    with pytest.raises(type(fault)):
        await ask(given_up.read)
    assert (asked.times, given_up.times, QUERY_ATTEMPTS) == (2, 2, 2)


@pytest.mark.parametrize("answer", [NotSignedIn(), NotConnected()])
async def test_unauthorized_and_other_answers_are_not_asked_for_again(answer: HoldfastError) -> None:
    asked = Asked(answer)
    with pytest.raises(type(answer)):
        await ask(asked.read)
    assert asked.times == 1
