"""REST: the caller itself, its guilds and its application."""

from datetime import UTC, datetime
from typing import Any

from sandbox.discord.actions import bots
from sandbox.discord.answers.errors import missing_access, missing_scope, unknown
from sandbox.discord.answers.limits import OWN_GUILDS
from sandbox.discord.rest.call import Bearer, Call, Endpoint
from sandbox.discord.world import permissions, shapes
from sandbox.discord.world.audit import By
from sandbox.discord.world.entities import Guild
from sandbox.discord.world.snowflakes import iso

_SOUNDS = (
    ("quack", "🦆"), ("airhorn", "🔊"), ("cricket", "🦗"), ("golf clap", "👏"),
    ("sad horn", "🎺"), ("ba dum tss", "🥁"),
)  # fmt: skip


async def get_me(call: Call) -> dict[str, Any]:
    """Answer GET /users/@me."""
    _need_scope(call, "identify")
    return shapes.me(call.discord.world.users[_caller_id(call)])


async def get_user(call: Call) -> dict[str, Any]:
    """Answer GET /users/{id}."""
    user = call.discord.world.users.get(call.snowflake("user_id"))
    if user is None:
        raise unknown("User")
    return shapes.user(user)


async def get_my_guilds(call: Call) -> list[Any]:
    """Answer GET /users/@me/guilds, by id, in pages."""
    _need_scope(call, "guilds")
    limit = call.number("limit", 200, 1, 200)
    before, after = call.cursor("before"), call.cursor("after")
    caller = _caller_id(call)
    mine = sorted((g for g in call.discord.world.guilds.values() if caller in g.members), key=lambda g: int(g.id))
    if before is not None:
        mine = [guild for guild in mine if int(guild.id) < before][-limit:]
    if after is not None:
        mine = [guild for guild in mine if int(guild.id) > after]
    with_counts = call.switch("with_counts")
    return [shapes.my_guild(guild, guild.members[caller], with_counts) for guild in mine[:limit]]


async def get_my_member(call: Call) -> dict[str, Any]:
    """Answer GET /users/@me/guilds/{guild}/member."""
    _need_scope(call, "guilds.members.read")
    caller = _caller_id(call)
    guild = _guild_of(call, caller)
    member = guild.members[caller]
    shape = shapes.member(member, call.discord.world.users[caller])
    return {**shape, "permissions": str(permissions.guild_permissions(guild, member))}


async def leave_guild(call: Call) -> None:
    """Answer DELETE /users/@me/guilds/{guild}: the bot leaves."""
    guild = _guild_of(call, call.discord.bot_id)
    bots.remove(call.discord, guild, By(call.discord.bot_id))


async def get_authorization(call: Call) -> dict[str, Any]:
    """Answer GET /oauth2/@me."""
    discord = call.discord
    bot = discord.world.users[discord.bot_id]
    actor = call.actor
    assert isinstance(actor, Bearer)
    answer: dict[str, Any] = {
        "application": shapes.application(discord.bot_id, bot, discord.application.flags),
        "scopes": actor.grant.scopes,
        "expires": iso(datetime.fromtimestamp(actor.grant.expires_at, UTC)),
    }
    if "identify" in actor.grant.scopes:
        answer["user"] = shapes.user(discord.world.users[actor.grant.user_id])
    return answer


async def get_application(call: Call) -> dict[str, Any]:
    """Answer GET /applications/@me and /oauth2/applications/@me."""
    discord = call.discord
    bot = discord.world.users[discord.bot_id]
    owner = discord.world.users[discord.sandbox.people[0].id]
    return {
        **shapes.application(discord.bot_id, bot, discord.application.flags),
        "redirect_uris": list(discord.redirects),
        "interactions_endpoint_url": None,
        "role_connections_verification_url": None,
        "owner": shapes.user(owner),
        "approximate_guild_count": sum(1 for g in discord.world.guilds.values() if bot.id in g.members),
        "approximate_user_install_count": 0,
        "approximate_user_authorization_count": len({grant.user_id for grant in discord.world.grants.values()}),
        "explicit_content_filter": 0,
        "team": None,
        "eligible_oauth2_scopes": ["identify", "guilds", "guilds.members.read", "bot", "applications.commands"],
    }


async def get_emojis(call: Call) -> dict[str, Any]:
    """Answer GET /applications/{application}/emojis: the application has none."""
    if call.snowflake("application_id") != call.discord.bot_id:
        raise unknown("Application")
    return {"items": []}


async def get_sounds(call: Call) -> list[Any]:
    """Answer GET /soundboard-default-sounds."""
    return [
        {
            "name": name, "sound_id": str(number), "volume": 1.0, "emoji_id": None, "emoji_name": emoji,
            "available": True,
        }
        for number, (name, emoji) in enumerate(_SOUNDS, start=1)
    ]  # fmt: skip


async def get_gateway(call: Call) -> dict[str, Any]:
    """Answer GET /gateway."""
    return {"url": call.discord.gateway.url}


async def get_gateway_bot(call: Call) -> dict[str, Any]:
    """Answer GET /gateway/bot."""
    discord = call.discord
    guilds = sum(discord.bot_id in guild.members for guild in discord.world.guilds.values())
    shards, starts = discord.application.shards(guilds), discord.gateway.starts.view()
    return {"url": discord.gateway.url, "shards": shards, "session_start_limit": starts}


def _caller_id(call: Call) -> str:
    return call.actor.grant.user_id if isinstance(call.actor, Bearer) else call.discord.bot_id


def _need_scope(call: Call, scope: str) -> None:
    if isinstance(call.actor, Bearer) and scope not in call.actor.grant.scopes:
        raise missing_scope()


def _guild_of(call: Call, user_id: str) -> Guild:
    guild = call.discord.world.guilds.get(call.snowflake("guild_id"))
    if guild is None:
        raise unknown("Guild")
    if user_id not in guild.members:
        raise missing_access() if isinstance(call.actor, Bearer) else unknown("Guild")
    return guild


ENDPOINTS = (
    Endpoint("GET", "/users/@me", get_me, "both"),
    Endpoint("GET", "/users/@me/guilds", get_my_guilds, "both", bearer_limit=OWN_GUILDS),
    Endpoint("GET", "/users/@me/guilds/{guild_id}/member", get_my_member, "bearer"),
    Endpoint("DELETE", "/users/@me/guilds/{guild_id}", leave_guild),
    Endpoint("GET", "/users/{user_id}", get_user),
    Endpoint("GET", "/oauth2/@me", get_authorization, "bearer"),
    Endpoint("GET", "/oauth2/applications/@me", get_application),
    Endpoint("GET", "/applications/@me", get_application),
    Endpoint("GET", "/applications/{application_id}/emojis", get_emojis),
    Endpoint("GET", "/soundboard-default-sounds", get_sounds),
    Endpoint("GET", "/gateway", get_gateway, "anyone"),
    Endpoint("GET", "/gateway/bot", get_gateway_bot),
)
