"""Events about members become facts, and the library caches no member."""

from types import SimpleNamespace
from typing import Any

import nextcord
import pytest

from bot.client import Bot
from bot.gateway import member_event_parsers
from services.guilds.members import MemberFacts, UnreadableMember

GUILD, ROLE, SELF, SOMEBODY = 1 << 40, "77", 5, 6


def event(user_id: int, **more: Any) -> dict[str, Any]:
    user = {"id": str(user_id), "username": "who", "discriminator": "0", "avatar": None, "global_name": "Who"}
    return {"guild_id": str(GUILD), "user": user, "roles": [ROLE], "joined_at": None, "flags": 0, **more}


@pytest.fixture
async def told(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[Any]]:
    """The library's state with one guild whose only member is the bot, and the events that it dispatched."""
    bot = Bot(intents=nextcord.Intents(guilds=True, members=True), member_cache_flags=nextcord.MemberCacheFlags.none())
    state: Any = bot._connection
    state.user = SimpleNamespace(id=SELF)
    own = {"user": event(SELF)["user"], "roles": [], "joined_at": None, "flags": 0}
    state._add_guild_from_data({"id": str(GUILD), "name": "A", "roles": [], "members": [own], "member_count": 1})
    found: list[Any] = []
    monkeypatch.setattr(bot, "dispatch", lambda name, *rest: found.append((name, *rest)))
    member_event_parsers.replace(state, bot.dispatch)
    return state, found


async def test_a_strangers_events_are_facts_and_leave_nothing_in_the_cache(told: tuple[Any, list[Any]]) -> None:
    state, found = told
    facts = MemberFacts(str(SOMEBODY), "Who", frozenset({ROLE}))
    for name in (member_event_parsers.ADDED, member_event_parsers.CHANGED, member_event_parsers.REMOVED):
        state.parsers[name](event(SOMEBODY))
    ours = (member_event_parsers.TOLD, GUILD, SOMEBODY)
    assert found == [(*ours, facts, True), (*ours, facts, False), (*ours, None, False)]
    guild = state._get_guild(GUILD)
    assert [one.id for one in guild.members] == [SELF]
    assert guild.member_count == 1
    state.store_user(event(SOMEBODY)["user"])
    assert state.get_user(SOMEBODY) is None


async def test_the_library_still_reads_what_is_about_the_bot_itself(told: tuple[Any, list[Any]]) -> None:
    state, found = told
    state.parsers[member_event_parsers.CHANGED](event(SELF, nick="Keeper"))
    assert state._get_guild(GUILD).me.nick == "Keeper"
    assert found[-1][:3] == (member_event_parsers.TOLD, GUILD, SELF)


@pytest.mark.parametrize("broken", [{}, {"user": {}}, {"roles": 7}, {"roles": [7]}])
async def test_what_cannot_be_read_raises_as_the_librarys_parsers_do(
    told: tuple[Any, list[Any]], broken: dict[str, Any]
) -> None:
    state, found = told
    data = event(SOMEBODY, **broken) if broken else {}
    with pytest.raises((KeyError, UnreadableMember)):
        state.parsers[member_event_parsers.CHANGED](data)
    assert found == []
