"""How long a read waits for Discord when an older answer exists, and which answer it then uses."""

import asyncio

import pytest

from gateways.transport.errors import ProviderDown
from services.guilds import last_answers
from services.guilds.last_answers import LastAnswers


async def silence() -> None:
    await asyncio.Event().wait()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time limits that were set; each one expires at once."""
    found: list[float] = []
    timeout = asyncio.timeout

    def over(seconds: float) -> asyncio.Timeout:
        found.append(seconds)
        return timeout(0.0)

    monkeypatch.setattr(last_answers.asyncio, "timeout", over)
    return found


async def in_vain(answers: LastAnswers, person: str) -> None:
    with pytest.raises(ProviderDown):
        async with answers.limit(person, brief=True):
            await silence()


async def test_after_a_wait_in_vain_the_same_person_waits_hardly_at_all_and_others_as_before(
    waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = LastAnswers()
    for person in ("1", "1", "2", "1"):
        await in_vain(answers, person)
    first, after = last_answers.FIRST_SECONDS, last_answers.NEXT_SECONDS
    assert waits == [first, after, first, after]
    monkeypatch.setattr(last_answers, "IMPATIENT_SECONDS", 0.0)
    await in_vain(answers, "1")
    assert waits[-1] == first, "now and then a proper try shows that Discord is back, however slow it is"


async def test_an_answer_ends_the_impatience() -> None:
    answers = LastAnswers()
    answers._in_vain["1"] = asyncio.get_running_loop().time()
    async with answers.limit("1", brief=True):
        pass
    assert answers._in_vain == {}


async def test_where_nothing_older_would_do_discord_is_waited_for(waits: list[float]) -> None:
    async with LastAnswers().limit("1", brief=False):
        pass
    assert waits == []


async def test_a_screen_with_four_reads_shows_within_three_seconds() -> None:
    assert last_answers.FIRST_SECONDS + 4 * last_answers.NEXT_SECONDS <= 2.5


async def test_the_answers_kept_are_limited_in_number_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_answers, "KEPT", 3)
    answers = LastAnswers()
    for server in range(5):
        answers.keep("1", server)
    assert [server for server in range(5) if answers.stands("1", server)] == [2, 3, 4]
    answers.drop("1", 4)
    assert not answers.stands("1", 4)
    assert not answers.stands("2", 3)
    monkeypatch.setattr(last_answers, "KEPT_SECONDS", 0.0)
    assert not answers.stands("1", 3)
