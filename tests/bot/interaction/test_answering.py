"""The work behind an answer, its end when the answer is cancelled, and how much of it one person may ask for."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import nextcord
import pytest

from bot.interaction import answering
from bot.interaction.answering import InteractionContext, Work
from bot.messages.reply import Reply
from services.core.errors import Conflict
from services.runtime import rate_limits
from settings import settings


async def test_work_ends_with_the_answer_that_waits_for_it() -> None:
    begun, ends = asyncio.Event(), list[str]()

    async def work() -> Reply:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ends.append("work")
        return Reply("Never")

    task = asyncio.create_task(answering.outcome(work()))
    await begun.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (task.cancelled(), ends) == (True, ["work"])


async def test_a_typed_name_is_no_markup_in_the_reason_of_a_refusal() -> None:
    async def work() -> Reply:
        raise Conflict("@here||x||.eth is not a valid name.")

    assert (await answering.outcome(work())).text == "\\@here\\|\\|x\\|\\|.eth is not a valid name."


class Person:
    """Somebody whose interactions are acknowledged at once; `titles` has what they were answered."""

    def __init__(self, number: int) -> None:
        self.id, self.titles = number, list[str]()

    async def sends(self, work: Work) -> None:
        """Send an interaction that asks for this work."""

        async def defer(**_: object) -> None: ...

        async def edit(*, embeds: list[nextcord.Embed], view: object) -> None:
            self.titles.append(embeds[0].title or "")

        user = SimpleNamespace(id=self.id, name="ada", discriminator="0")
        sent: Any = SimpleNamespace(
            id=1, guild_id=1, guild=object(), user=user, locale=None, response=SimpleNamespace(defer=defer),
            edit_original_message=edit, created_at=datetime.now(UTC),
        )  # fmt: skip
        await answering.answer(sent, work)


@pytest.mark.parametrize(
    ("private", "fails", "titles", "in_place", "buttons_go"),
    [
        (True, False, ["Done"], True, True),
        (True, True, ["That did not work", "Sure?"], True, False),
        (False, False, ["Done"], False, True),
        (False, True, ["That did not work"], False, True),
    ],
)
async def test_a_reply_takes_the_place_of_its_own_question_and_a_failure_keeps_the_question(
    monkeypatch: pytest.MonkeyPatch, private: bool, fails: bool, titles: list[str], in_place: bool, buttons_go: bool
) -> None:
    deferred, shown = list[dict[str, Any]](), list[dict[str, Any]]()

    async def nothing(_: object) -> list[object]:
        return []

    async def defer(**how: Any) -> None:
        deferred.append(how)

    async def edit(**changes: Any) -> None:
        shown.append(changes)

    async def work(_: InteractionContext) -> Reply:
        if fails:
            raise Conflict("Not now.")
        return Reply("Done")

    monkeypatch.setattr(answering, "_waiting", nothing)
    monkeypatch.setattr(answering.rate_limits, "spend_for_interaction", nothing)
    embeds = [nextcord.Embed(title="An earlier failure"), nextcord.Embed(title="Sure?")]
    pressed: Any = SimpleNamespace(
        id=1, guild_id=1, guild=object(), user=SimpleNamespace(id=1, name="ada", discriminator="0"), locale=None,
        response=SimpleNamespace(defer=defer), edit_original_message=edit, created_at=datetime.now(UTC),
        message=SimpleNamespace(flags=SimpleNamespace(ephemeral=private), embeds=embeds),
    )  # fmt: skip
    await answering.answer(pressed, work, takes_place=True)
    assert [how["with_message"] for how in deferred] == [not in_place]
    assert [[one.title for one in changes["embeds"]] for changes in shown] == [titles]
    assert ["view" in changes for changes in shown] == [buttons_go]


@pytest.mark.parametrize(("asked", "titles"), [(2_000, ["No", "Sure?"]), (4_000, ["No"])])
async def test_a_failure_is_shown_even_where_its_question_has_no_room_below_it(asked: int, titles: list[str]) -> None:
    """Discord refuses a message whose embeds have more than 6,000 characters together."""
    shown = list[list[nextcord.Embed]]()

    async def edit(*, embeds: list[nextcord.Embed]) -> None:
        shown.append(embeds)

    pressed: Any = SimpleNamespace(edit_original_message=edit, created_at=datetime.now(UTC))
    question: Any = SimpleNamespace(embeds=[nextcord.Embed(title="Sure?", description="x" * asked)])
    assert await answering.show(pressed, Reply("No", "y" * 2_500, failed=True), question)
    assert [[one.title for one in embeds] for embeds in shown] == [titles]
    assert sum(map(len, shown[0])) <= 6_000


@pytest.fixture
async def two_a_minute(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Let one person send two interactions a minute."""
    monkeypatch.delenv("REDIS_URL", raising=False)
    monkeypatch.setenv("LIMIT_INTERACTIONS", "2")
    settings.cache_clear()
    await rate_limits.forget()
    yield
    settings.cache_clear()
    await rate_limits.forget()


@pytest.mark.usefixtures("two_a_minute")
async def test_one_person_cannot_keep_the_bot_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    done = list[str]()

    async def nothing(_: object) -> list[object]:
        return []

    async def work(context: InteractionContext) -> Reply:
        done.append(context.discord_id)
        return Reply("Done")

    monkeypatch.setattr(answering, "_waiting", nothing)
    busy, other = Person(1), Person(2)
    for who in (busy, busy, busy, other):
        await who.sends(work)
    assert busy.titles == ["Done", "Done", "Not so fast"]
    assert other.titles == ["Done"]
    assert done == ["1", "1", "2"], "what is refused costs nothing"


@pytest.mark.usefixtures("two_a_minute")
async def test_one_person_cannot_keep_the_bot_busy_with_lists_of_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    offered, member = list[dict[str, str]](), object()

    async def found(_: InteractionContext) -> object:
        return member

    async def find(_: object) -> list[tuple[str, str]]:
        return [("Whale", "7")]

    async def send_autocomplete(choices: dict[str, str]) -> None:
        offered.append(choices)

    monkeypatch.setattr(InteractionContext, "find_member", found)
    for who in (1, 1, 1, 2):
        user = SimpleNamespace(id=who, name="ada", discriminator="0")
        response = SimpleNamespace(send_autocomplete=send_autocomplete)
        typing: Any = SimpleNamespace(guild_id=1, user=user, locale=None, response=response)
        await answering.offer(typing, find)
    assert offered == [{"Whale": "7"}, {"Whale": "7"}, {}, {"Whale": "7"}]
    await rate_limits.spend_for_interaction("1")  # their commands are counted apart
