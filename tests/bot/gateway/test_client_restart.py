"""What comes after a client that ended, and what the log says about it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from types import SimpleNamespace
from typing import cast

import nextcord
import pytest

from bot import client_restart
from bot.client import Bot
from gateways import close_gateways
from services.guilds import members_intent


@pytest.fixture(autouse=True)
async def closed() -> AsyncIterator[None]:
    """The gateways that clients asked are closed: they lead nowhere, and another test would get them."""
    yield
    await close_gateways()


async def test_an_end_that_is_understood_is_one_line_with_its_cause(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """During an outage of Discord or of the names it comes every two minutes; forty lines of code explain nothing."""
    ends: list[BaseException] = [OSError("Name or service not known"), KeyError("odd")]

    async def life(*_: object) -> BaseException:
        if not ends:
            raise asyncio.CancelledError
        return ends.pop(0)

    async def at_once(*_: object) -> bool:
        return True

    monkeypatch.setattr(client_restart, "_one_life", life)
    monkeypatch.setattr(client_restart, "_rest", at_once)
    monkeypatch.setattr(members_intent, "may_ask", at_once)
    with suppress(asyncio.CancelledError):
        await client_restart.live(lambda _: cast(Bot, SimpleNamespace()), "token")
    understood, other = [record for record in caplog.records if record.levelname == "ERROR"]
    assert understood.getMessage().endswith("Discord cannot be reached. cause=OSError: Name or service not known")
    assert understood.exc_info is None
    assert other.exc_info


class Lives:
    """Clients that end as a test wants, and whether each session asked for the Members intent."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *ends: BaseException, is_off: bool = False) -> None:
        self.ends: list[BaseException] = list(ends)
        self.asked: list[bool] = []
        self.rests: list[tuple[float, str]] = []
        self.is_off: bool = False
        """What Discord says about the intent; after the first client `is_off`, and after the next one that it is on."""
        self._after: bool = is_off
        monkeypatch.setattr(client_restart, "_one_life", self._end)
        monkeypatch.setattr(client_restart, "_rest", self._rest)
        monkeypatch.setattr(members_intent, "is_off", self._says)

    async def _says(self, _: object) -> bool:
        return self.is_off

    async def _end(self, *_: object) -> BaseException:
        if not self.ends:
            raise asyncio.CancelledError
        self.is_off, self._after = self._after, False
        return self.ends.pop(0)

    async def _rest(self, seconds: float, sentence: str) -> None:
        self.rests.append((seconds, sentence))

    def _build(self, has_intent: bool) -> Bot:
        self.asked.append(has_intent)
        return cast(Bot, SimpleNamespace())

    async def run(self) -> None:
        with suppress(asyncio.CancelledError):
            await client_restart.live(self._build, "token")


async def test_an_intent_that_is_switched_on_while_no_client_runs_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The running client notices the switch, but the one after it does not know that it was ever off."""
    lives = Lives(monkeypatch, nextcord.PrivilegedIntentsRequired(0), OSError("Connection reset"), is_off=True)
    await lives.run()
    assert lives.asked == [True, False, True]


async def test_an_intent_that_discord_refuses_although_it_says_that_it_is_on_is_left_alone_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lives = Lives(monkeypatch, nextcord.PrivilegedIntentsRequired(0), OSError("Connection reset"))
    await lives.run()
    assert lives.asked == [True, False, False]


async def test_a_refused_intent_that_the_session_did_not_ask_for_is_a_closed_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lives = Lives(monkeypatch, nextcord.PrivilegedIntentsRequired(0), nextcord.PrivilegedIntentsRequired(0))
    await lives.run()
    ((seconds, sentence),) = lives.rests
    assert seconds < client_restart.REFUSED_PAUSE
    assert sentence != client_restart.NO_INTENT
    assert "Discord closed the connection (code 4014)." in caplog.text
