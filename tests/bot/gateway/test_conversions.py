"""The library's members become facts with all their roles, also in a guild that the library does not know well."""

from types import SimpleNamespace
from typing import Any

import nextcord
import pytest

from bot.client import Bot
from bot.gateway.conversions import member_facts
from bot.gateway.guild_snapshot import guild_snapshot

GUILD, KNOWN, NEW, SELF = 1 << 40, "77", "78", 5
USER = {"id": "6", "username": "who", "discriminator": "0", "avatar": None, "global_name": "Who"}
ROLE = {
    "id": KNOWN, "name": "Known", "permissions": "0", "position": 1, "color": 0, "hoist": False, "managed": False,
    "mentionable": False,
}  # fmt: skip


@pytest.fixture
async def state() -> Any:
    """The library's state with no guild yet."""
    bot = Bot(intents=nextcord.Intents(guilds=True), member_cache_flags=nextcord.MemberCacheFlags.none())
    found: Any = bot._connection
    found.user = SimpleNamespace(id=SELF)
    return found


def member(state: Any, guild: Any) -> nextcord.Member:
    data: Any = {"user": USER, "roles": [KNOWN, NEW], "joined_at": None, "flags": 0}
    return nextcord.Member(data=data, guild=guild, state=state)


async def test_a_role_of_which_a_resumed_session_has_not_learned_yet_is_not_lost(state: Any) -> None:
    """Otherwise it would look as if somebody had taken it."""
    own = {"user": {**USER, "id": str(SELF)}, "roles": [KNOWN, NEW], "joined_at": None, "flags": 0}
    data = {"id": str(GUILD), "name": "A", "roles": [{**ROLE, "id": str(GUILD)}, ROLE], "members": [own]}
    guild = state._add_guild_from_data(data)
    assert member_facts(member(state, guild)).roles == {KNOWN, NEW}
    assert f'"roles":["{KNOWN}","{NEW}"]' in guild_snapshot(guild)


async def test_a_member_of_a_guild_that_has_not_arrived_has_their_roles(state: Any) -> None:
    guild = state._add_guild_from_data({"id": str(GUILD), "unavailable": True})
    assert member_facts(member(state, guild)).roles == {KNOWN, NEW}
