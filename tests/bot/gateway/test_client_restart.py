"""What the log says about a client that ended."""

import asyncio
from contextlib import suppress
from types import SimpleNamespace
from typing import cast

import pytest

from bot import client_restart
from bot.client import Bot
from services.guilds import members_intent


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
