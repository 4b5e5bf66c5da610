"""What the gateway tells is told on, also while the database does not answer."""

from typing import Any

import pytest
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoneFree

from bot import events
from bot.events import Events
from tests.jobs.conftest import product as product

AWAY = [
    OperationalError("", None, Exception("the server closed the connection")),
    InterfaceError("", None, Exception("the connection is closed")),
    NoneFree("no connection became free"),
]


@pytest.mark.parametrize("fault", AWAY, ids=lambda fault: type(fault).__name__)
async def test_no_event_is_lost_while_the_database_is_away(
    product: None, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    monkeypatch.setattr(events, "DATABASE_PAUSE", 0.01)
    told: list[str] = []

    async def write(db: Any) -> None:
        told.append("written" if told else "tried")
        if told == ["tried"]:
            raise fault

    await Events(bot=object())._tell(write)  # pyright: ignore[reportArgumentType]
    assert told == ["tried", "written"]
