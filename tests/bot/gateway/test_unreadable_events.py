"""Unreadable events are skipped and counted, and only the necessary parts of READY are read."""

from typing import Any

import pytest

from bot.gateway.unreadable_events import SKIPPED, UnreadableEvents

READY: dict[str, Any] = {
    "user": {"id": "7", "username": "holdfast", "discriminator": "0", "avatar": None, "clan": "odd"},
    "application": {"id": "8", "flags": "odd"},
    "guilds": [{"id": "9", "unavailable": True}, {"name": "odd"}, None],
    "session_id": "s",
    "__shard_id__": 3,
    "odd": True,
}


def guarded(parsers: dict[str, Any]) -> tuple[UnreadableEvents, list[str]]:
    missed: list[str] = []
    unreadable = UnreadableEvents(lambda event, data: missed.append(event))
    unreadable.guard(parsers)
    return unreadable, missed


async def test_a_ready_event_with_odd_parts_opens_the_session_all_the_same() -> None:
    read: list[Any] = []

    def parse(data: Any) -> None:
        if "odd" in str(data):
            raise TypeError("odd")
        read.append(data)

    parsers: dict[str, Any] = {"READY": parse}
    unreadable, missed = guarded(parsers)
    parsers["READY"](READY)
    assert read[0]["__shard_id__"] == 3
    assert read[0]["user"]["username"] == "holdfast"
    assert read[0]["guilds"] == [{"id": "9", "unavailable": True}]
    assert missed == []
    assert unreadable.counts() == {("READY", SKIPPED): 1}
    unreadable.close()


async def test_a_ready_event_without_a_user_ends_the_client() -> None:
    def parse(data: Any) -> None:
        raise TypeError("odd")

    parsers: dict[str, Any] = {"READY": parse}
    unreadable, _ = guarded(parsers)
    with pytest.raises(TypeError):
        parsers["READY"](READY)
    unreadable.close()


async def test_every_other_event_is_skipped_and_counted_until_the_count_is_stored() -> None:
    def parse(data: Any) -> None:
        raise KeyError(data)

    parsers: dict[str, Any] = {"RESUMED": parse, "GUILD_CREATE": parse}
    unreadable, missed = guarded(parsers)
    parsers["RESUMED"](None)
    parsers["GUILD_CREATE"]({})
    assert missed == ["RESUMED", "GUILD_CREATE"]
    stored = unreadable.counts()
    parsers["GUILD_CREATE"]({})
    unreadable.counted(stored)
    assert unreadable.counts() == {("GUILD_CREATE", SKIPPED): 1}
    unreadable.close()
