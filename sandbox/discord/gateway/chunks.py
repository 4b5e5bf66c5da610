"""Request Guild Members (op 8): members in chunks, the whole guild once in 30 s."""

from typing import Any

from sandbox.discord.gateway.gateway import Gateway
from sandbox.discord.gateway.session import Session
from sandbox.discord.world import intents, shapes
from sandbox.discord.world.entities import Guild, Member

CHUNK = 1000
MOST_WANTED = 100
LONGEST_NONCE = 32


def answer(gateway: Gateway, session: Session, wanted: dict[str, Any]) -> None:
    """Send the chunks that a client asked for. Raises LookupError, TypeError or ValueError for a malformed request."""
    guild_id, limit = wanted["guild_id"], wanted.get("limit")
    if limit is not None and (type(limit) is not int or limit < 0):
        raise ValueError("limit is a whole number, and not negative.")
    guild_id = str(guild_id[0] if isinstance(guild_id, list) else guild_id)
    guild = gateway.discord.world.guilds.get(guild_id)
    if guild is None or gateway.discord.bot_id not in guild.members or not session.has_guild(guild_id):
        return
    whole = wanted.get("user_ids") is None and not wanted.get("query") and not wanted.get("limit")
    nonce = _nonce(wanted.get("nonce"))
    if whole:
        if not session.intents & intents.GUILD_MEMBERS:
            return
        left = gateway.wait_for_whole_guild(guild_id)
        if left:
            meta = {"guild_id": guild_id, "nonce": nonce}
            session.dispatch("RATE_LIMITED", {"opcode": 8, "retry_after": round(left, 3), "meta": meta})
            return
    found, missing = _found(gateway, guild, wanted)
    pieces = [found[at : at + CHUNK] for at in range(0, len(found), CHUNK)] or [[]]
    for index, piece in enumerate(pieces):
        chunk: dict[str, Any] = {
            "guild_id": guild_id,
            "members": [shapes.member(member, gateway.discord.world.users[member.user_id]) for member in piece],
            "chunk_index": index,
            "chunk_count": len(pieces),
        }
        if missing:
            chunk["not_found"] = missing
        if wanted.get("presences"):
            chunk["presences"] = []
        if nonce is not None:
            chunk["nonce"] = nonce
        session.dispatch("GUILD_MEMBERS_CHUNK", chunk)


def _nonce(given: Any) -> str | int | None:
    """Return a nonce that Discord repeats in its answer; it ignores one of more than 32 bytes."""
    usable = isinstance(given, str | int) and not isinstance(given, bool)
    return given if usable and len(str(given).encode()) <= LONGEST_NONCE else None


def _found(gateway: Gateway, guild: Guild, wanted: dict[str, Any]) -> tuple[list[Member], list[str]]:
    users = gateway.discord.world.users
    if wanted.get("user_ids") is not None:
        ids = wanted["user_ids"]
        ids = [str(each) for each in (ids if isinstance(ids, list) else [ids])][:MOST_WANTED]
        return [guild.members[i] for i in ids if i in guild.members], [i for i in ids if i not in guild.members]
    query, limit = str(wanted.get("query") or "").lower(), wanted.get("limit") or 0
    found = [
        member
        for member in guild.members.values()
        if users[member.user_id].username.lower().startswith(query) or (member.nick or "").lower().startswith(query)
    ]
    return (found[: min(limit, MOST_WANTED)] if query else found[: limit or None]), []
