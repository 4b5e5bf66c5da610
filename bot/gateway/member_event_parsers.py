"""Parsers of member events, in place of the library's: they keep no objects, so unknown people take no memory."""

from collections.abc import Callable
from typing import Any

from services.guilds import members

ADDED, CHANGED, REMOVED = "GUILD_MEMBER_ADD", "GUILD_MEMBER_UPDATE", "GUILD_MEMBER_REMOVE"
TOLD = "member_told"
"""Our event: the guild's id, the person's id, their facts (None for one who left), and whether they joined."""


def replace(state: Any, dispatch: Callable[..., None]) -> None:
    """Replace the library's parsers of member events, which create an object for each event.

    The library still reads events about the bot itself. An event with a missing field raises, as in the library.
    """
    for event in (ADDED, CHANGED, REMOVED):
        state.parsers[event] = _parser(state, dispatch, event, state.parsers[event])
    # Otherwise every person who uses the bot would stay in the library's cache of users.
    state.store_user = state.create_user


def _parser(
    state: Any, dispatch: Callable[..., None], event: str, parse: Callable[[Any], Any]
) -> Callable[[Any], None]:
    counted = {ADDED: 1, REMOVED: -1}.get(event, 0)

    def parsed(data: Any) -> None:
        guild_id, user_id = int(data["guild_id"]), int(data["user"]["id"])
        facts = None if event == REMOVED else members.facts_of(data, str(user_id))
        guild = state._get_guild(guild_id)
        if user_id == state.self_id:
            parse(data)
        elif guild is not None and counted:
            guild._member_count = (guild.member_count or 0) + counted
        dispatch(TOLD, guild_id, user_id, facts, event == ADDED)

    return parsed
