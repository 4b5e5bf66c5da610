"""An error of the bot's own is in the log, in its format and without what people typed, and its person is answered."""

import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import nextcord
import pytest

from bot import client
from bot.interaction import answering
from services.runtime import logs

ADDRESS = "0x" + "ab" * 20
COMMAND = nextcord.InteractionType.application_command
CHOICES = nextcord.InteractionType.application_command_autocomplete


@pytest.fixture(autouse=True)
def redacted() -> Iterator[None]:
    """The log as the bot's process sets it up."""
    before = logging.getLogRecordFactory()
    logs.redact_every_log()
    yield
    logging.setLogRecordFactory(before)


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The titles of the answers that people were sent."""
    titles = list[str]()

    async def answer(interaction: Any, work: Any) -> None:
        titles.append((await work(interaction)).title)

    monkeypatch.setattr(answering, "answer", answer)
    return titles


def used(kind: nextcord.InteractionType, *, is_answered: bool = False) -> Any:
    """Return an interaction with a command of the number 7."""
    return SimpleNamespace(
        type=kind, data={"id": "7", "name": "wallets"}, response=SimpleNamespace(is_done=lambda: is_answered)
    )


def said(caplog: pytest.LogCaptureFixture) -> str:
    """Return what our own log has, with its tracebacks."""
    (record,) = [one for one in caplog.records if one.name.startswith("holdfast") and one.levelname == "ERROR"]
    return f"{record.getMessage()}\n{record.exc_text or ''}"


async def test_an_error_of_a_handler_is_in_the_log_and_not_printed_past_it(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    bot = client.Bot(intents=nextcord.Intents.none())

    async def on_odd() -> None:
        raise LookupError(ADDRESS)

    bot.event(on_odd)
    bot.dispatch("odd")
    await bot.close()
    told = said(caplog)
    assert told.startswith("event handler failed event=odd\nTraceback")
    assert "LookupError: [address]" in told
    assert "LookupError" not in capsys.readouterr().err


@pytest.mark.parametrize(("is_answered", "titles"), [(False, ["Something went wrong on our side"]), (True, [])])
async def test_a_command_that_fails_is_in_the_log_and_answered_once(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str], answered: list[str], is_answered: bool,
    titles: list[str],
) -> None:  # fmt: skip
    bot = client.Bot(intents=nextcord.Intents.none())
    fault = nextcord.ApplicationInvokeError(LookupError(ADDRESS))
    bot.dispatch("application_command_error", used(COMMAND, is_answered=is_answered), fault)
    await bot.close()
    assert said(caplog).splitlines()[0] == "command failed name=wallets"
    assert "LookupError: [address]" in said(caplog)
    assert (answered, "LookupError" in capsys.readouterr().err) == (titles, False)


async def test_a_command_with_an_option_of_another_version_is_answered(
    caplog: pytest.LogCaptureFixture, answered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def missing(*_: object) -> None:
        raise nextcord.ApplicationCommandOptionMissing("Discord-sent args: somebody.eth")

    monkeypatch.setattr(client.commands.AutoShardedBot, "process_application_commands", missing)
    bot = client.Bot(intents=nextcord.Intents.none())
    bot.dispatch("interaction", used(COMMAND))
    await bot.close()
    assert said(caplog) == "command failed name=wallets fault=ApplicationCommandOptionMissing\n"
    assert answered == ["Something went wrong on our side"]


async def test_choices_of_a_command_that_is_not_registered_yet_are_no_error(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str], answered: list[str]
) -> None:
    bot = client.Bot(intents=nextcord.Intents.none())
    bot.dispatch("interaction", used(CHOICES))
    await bot.close()
    errors = [one for one in caplog.records if one.name.startswith("holdfast")]
    assert (answered, errors, capsys.readouterr().err) == ([], [], "")
