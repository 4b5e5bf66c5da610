"""What every REST call goes through: faults, the caller, limits, the ids in its path, and the form of its answer."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from aiohttp import web

from sandbox.base.body import form, is_whole, parsed
from sandbox.discord.answers.errors import (
    DiscordError,
    blocked,
    form_error,
    missing_access,
    missing_permissions,
    unauthorized,
    unknown,
)
from sandbox.discord.answers.limits import Limit, Limits, Verdict, too_many
from sandbox.discord.answers.response import answered
from sandbox.discord.gateway.gateway import Gateway
from sandbox.discord.interactions.interactions import Interactions
from sandbox.discord.world import permissions
from sandbox.discord.world.audit import By, said_reason
from sandbox.discord.world.entities import Channel, Grant, Guild, Member, Role
from sandbox.discord.world.protocols import Discord

PREFIX = "/discord/api/v10"
# Version 9 is answered too, and so are paths without a version, which mean an old one. Differences are left out.
VERSIONS = (PREFIX, "/discord/api/v9", "/discord/api")
TOP_LEVEL_RESOURCES = ("guild_id", "channel_id", "webhook_token", "interaction_token")
_SNOWFLAKE = re.compile(r"0|[1-9][0-9]{0,19}")
EMPTY = object()
REASON, LONGEST_REASON = "X-Audit-Log-Reason", 512


@dataclass(frozen=True)
class Bot:
    """The caller is the application's bot."""

    token: str


@dataclass(frozen=True)
class Bearer:
    """The caller acts for a user who granted it some scopes."""

    token: str
    grant: Grant


class Backend(Discord, Protocol):
    """What REST calls need of Discord in addition."""

    @property
    def gateway(self) -> Gateway:
        """The sessions of the bot."""
        ...

    interactions: Interactions
    limits: Limits

    @property
    def bot_token(self) -> str:
        """The bot's token from `product.env`."""
        ...

    def caller(self, header: str | None) -> Bot | Bearer | None:
        """Return the caller that an Authorization header names, None without one. Raises 401 for an unknown token."""
        ...


@dataclass
class Call:
    """One REST call: the caller, the body, and look-ups that refuse as Discord does."""

    discord: Backend
    request: web.Request
    actor: Bot | Bearer | None
    body: Any

    @property
    def by(self) -> By:
        """The bot with the reason that the request gave."""
        return By(self.discord.bot_id, said_reason(self.request.headers.get(REASON)))

    def snowflake(self, name: str) -> str:
        """Return an id from the path. Raises 50035 for text that is not a snowflake."""
        value = self.request.match_info[name]
        if not _SNOWFLAKE.fullmatch(value):
            raise form_error(name, f'Value "{value}" is not snowflake.')
        return value

    def number(self, name: str, default: int, lowest: int, highest: int) -> int:
        """Return a whole number from the query, within bounds. Raises 50035."""
        value = self.request.query.get(name)
        if value is None:
            return default
        if not is_whole(value.removeprefix("-")):
            raise form_error(name, f'Value "{value}" is not int.')
        if int(value) < lowest:
            raise form_error(name, f"int value should be greater than or equal to {lowest}.")
        if int(value) > highest:
            raise form_error(name, f"int value should be less than or equal to {highest}.")
        return int(value)

    def cursor(self, name: str) -> int | None:
        """Return a snowflake from the query as a number to compare with. Raises 50035."""
        value = self.request.query.get(name)
        if value is not None and not _SNOWFLAKE.fullmatch(value):
            raise form_error(name, f'Value "{value}" is not snowflake.')
        return None if value is None else int(value)

    def switch(self, name: str) -> bool:
        """Return a yes or no from the query; absent means no."""
        return self.request.query.get(name, "").lower() in ("true", "1")

    def form(self) -> dict[str, Any]:
        """Return the body as an object. Raises 50035."""
        if self.body is EMPTY or self.body is None:
            return {}
        if not isinstance(self.body, dict):
            raise DiscordError(400, 50035, "Invalid Form Body")
        return self.body

    def guild(self) -> Guild:
        """Return the guild in the path. Raises 10004 if there is none, 50001 if the bot is not in it."""
        guild = self.discord.world.guilds.get(self.snowflake("guild_id"))
        if guild is None:
            raise unknown("Guild")
        if self.discord.bot_id not in guild.members:
            raise missing_access()
        return guild

    def own_member(self, guild: Guild) -> Member:
        """Return the bot's member in that guild."""
        return guild.members[self.discord.bot_id]

    def member(self, guild: Guild) -> Member:
        """Return the member in the path. Raises 10007 for a user who is not a member, 10013 for an unknown user."""
        user_id = self.snowflake("user_id")
        if user_id in guild.members:
            return guild.members[user_id]
        raise unknown("Member" if user_id in self.discord.world.users else "User")

    def role(self, guild: Guild) -> Role:
        """Return the role in the path. Raises 10011."""
        role = guild.roles.get(self.snowflake("role_id"))
        if role is None:
            raise unknown("Role")
        return role

    def channel(self) -> tuple[Guild, Channel]:
        """Return the channel in the path. Raises 10003 if there is none, 50001 if the bot may not see it."""
        channel = self.discord.world.channels.get(self.snowflake("channel_id"))
        if channel is None:
            raise unknown("Channel")
        guild = self.discord.world.guilds[channel.guild_id]
        member = guild.members.get(self.discord.bot_id)
        if member is None or not permissions.channel_permissions(guild, channel, member) & permissions.VIEW_CHANNEL:
            raise missing_access()
        return guild, channel

    def need(self, guild: Guild, permission: int) -> None:
        """Raise 50013 unless the bot has the permission in the guild."""
        if not permissions.guild_permissions(guild, self.own_member(guild)) & permission:
            raise missing_permissions()

    def need_in(self, guild: Guild, channel: Channel, permission: int) -> None:
        """Raise 50013 unless the bot has the permission in the channel."""
        if not permissions.channel_permissions(guild, channel, self.own_member(guild)) & permission:
            raise missing_permissions()


class TooMany(Exception):
    """A call reached a limit of its own after it was admitted."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__("You are being rate limited.")
        self.verdict = verdict


Answer = web.Response | dict[str, Any] | list[Any] | None
Handler = Callable[[Call], Awaitable[Answer]]


@dataclass(frozen=True)
class Endpoint:
    """A REST call. `who` is "bot", "bearer", "both" or "anyone"; with `exempt` a call does not count globally."""

    method: str
    path: str
    handler: Handler
    who: str = "bot"
    limit: Limit | None = None
    exempt: bool = False
    bearer_limit: Limit | None = None
    """The limit for a user's token, where it differs from the bot's."""
    strict_limit: Limit | None = None
    """The limit when the sandbox is strict, and so as slow as Discord."""
    unlimited: bool = False
    """Whether it has no limit, and its answers no limit headers."""


def routes(discord: Backend, endpoint: Endpoint) -> list[web.RouteDef]:
    """Return the endpoint as routes of the server, one for each version."""

    async def handle(request: web.Request) -> web.StreamResponse:
        faulty = await discord.faulty(request)
        if faulty is not None:
            return faulty
        headers: dict[str, str] = {}
        try:
            if not request.headers.get("User-Agent"):
                raise blocked()
            actor = discord.caller(request.headers.get("Authorization"))
            if not _admitted(actor, endpoint.who):
                raise unauthorized()
            verdict = _limited(discord, request, endpoint, actor)
            headers = verdict.headers
            if not verdict.allowed:
                return answered(too_many(verdict), 429, headers)
            if len(said_reason(request.headers.get(REASON)) or "") > LONGEST_REASON:
                raise form_error(REASON, f"Must be {LONGEST_REASON} or fewer in length.")
            call = Call(discord, request, actor, await _body(request))
            answer = await endpoint.handler(call)
        except TooMany as met:
            return answered(too_many(met.verdict), 429, met.verdict.headers)
        except DiscordError as error:
            return answered(error.body, error.status, headers)
        if isinstance(answer, web.Response):
            answer.headers.update(headers)
            return answer
        return answered(answer, 204 if answer is None else 200, headers)

    return [web.route(endpoint.method, prefix + endpoint.path, handle) for prefix in VERSIONS]


def _admitted(actor: Bot | Bearer | None, who: str) -> bool:
    if who == "anyone":
        return True
    allowed = {"bot": (Bot,), "bearer": (Bearer,), "both": (Bot, Bearer)}[who]
    return isinstance(actor, allowed)


def _limited(discord: Backend, request: web.Request, endpoint: Endpoint, actor: Bot | Bearer | None) -> Verdict:
    if endpoint.unlimited:
        return Verdict(True, "", 0.0, {})
    limit = endpoint.limit or Limit(f"{endpoint.method} {endpoint.path}")
    if isinstance(actor, Bearer):
        limit = endpoint.bearer_limit or limit
    elif discord.sandbox.strict:
        limit = endpoint.strict_limit or limit
    token = actor.token if actor else ""
    if actor is not None and not endpoint.exempt:
        verdict = discord.limits.take_global(token, limit)
        if verdict is not None:
            return verdict
    resources = (request.match_info.get(name) for name in TOP_LEVEL_RESOURCES)
    return discord.limits.take(token, limit, next(filter(None, resources), ""))


async def _body(request: web.Request) -> Any:
    if not request.can_read_body:
        return EMPTY
    if request.content_type == "application/json":
        return _parsed(await request.read())
    if request.content_type == "multipart/form-data":
        return _payload((await _form(request)).get("payload_json", "{}"))
    if not await request.read():
        return EMPTY
    if request.content_type == "application/x-www-form-urlencoded":
        fields = dict(await _form(request))
        # Clients that send forms in order to send files use this content type when there is no file.
        return _payload(fields["payload_json"]) if "payload_json" in fields else fields
    raise DiscordError(400, 50035, "Expected \"Content-Type\" header to be one of {'application/json'}.")


async def _form(request: web.Request) -> Mapping[str, Any]:
    try:
        return await form(request)
    except ValueError:
        raise DiscordError(400, 50035, "Invalid Form Body") from None


def _payload(field: Any) -> Any:
    """Return what is in the JSON field of a form.

    The field is text, bytes if it has a content type, or a file if it has a file's name, as a browser's Blob has.
    """
    if isinstance(field, web.FileField):
        return _parsed(field.file.read())
    return _parsed(bytes(field) if isinstance(field, bytes | bytearray) else str(field).encode())


def _parsed(content: bytes) -> Any:
    if not content:
        return EMPTY
    try:
        return parsed(content)
    except ValueError:
        raise DiscordError(400, 50109, "The request body contains invalid JSON.") from None
