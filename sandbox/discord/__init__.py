"""A local Discord: OAuth2, REST, gateway and CDN over one world."""

import re
import time
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from aiohttp import hdrs, web

from sandbox.base.faults import Answer
from sandbox.base.people import wallets_of
from sandbox.base.sandbox import Sandbox
from sandbox.discord.actions import restore
from sandbox.discord.answers import limits
from sandbox.discord.answers.edge import Edge
from sandbox.discord.answers.errors import unauthorized
from sandbox.discord.answers.limits import Limits, Verdict, too_many
from sandbox.discord.answers.response import answered
from sandbox.discord.cdn import Cdn
from sandbox.discord.gateway import endpoint
from sandbox.discord.gateway.gateway import Gateway
from sandbox.discord.interactions.interactions import Interactions
from sandbox.discord.oauth.authorize import CALLBACK_PATH, Authorize
from sandbox.discord.oauth.oauth import OAuth
from sandbox.discord.rest import audit, channels, commands, interactions, members, messages
from sandbox.discord.rest import guilds as rest_guilds
from sandbox.discord.rest import users as rest_users
from sandbox.discord.rest.call import Bearer, Bot, routes
from sandbox.discord.world import shapes
from sandbox.discord.world.application import Application
from sandbox.discord.world.entities import Guild, User
from sandbox.discord.world.world import World

_LISTS = re.compile(r"/(guilds|roles|members|search|channels|messages|commands)$")
_REST = (rest_users, rest_guilds, audit, members, channels, messages, commands, interactions)


class LocalDiscord:
    """The Discord of one sandbox."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.bot_id = sandbox.settings["DISCORD_CLIENT_ID"]
        self.world = World()
        self.limits = Limits()
        self.edge = Edge()
        self.gateway = Gateway(self)
        self.oauth = OAuth(self)
        self.interactions = Interactions(self)

    async def start(self) -> None:
        """Replay the world, or create the one of the start."""
        self.world.open(self.sandbox.data / "discord.jsonl")
        if not self.world.guilds:
            restore.to_start(self)

    async def stop(self) -> None:
        """Close the gateway and the journal."""
        await self.gateway.stop()
        self.world.close()

    async def reset(self) -> None:
        """Restore the world of the start; grants end, commands stay."""
        self.renew_limits()
        self.world.save(Application())
        self.gateway.forget_limits()
        self.oauth.forget()
        self.interactions.forget()
        restore.to_start(self)

    def renew_limits(self) -> None:
        """Start all limits with full windows."""
        self.limits.clear()
        self.edge.renew()

    def restore_redirects(self) -> None:
        """Forget the redirects that were registered."""
        self.world.save(replace(self.application, registered=None))

    @property
    def application(self) -> Application:
        """The application's settings in the Developer Portal."""
        return self.world.application

    @property
    def redirects(self) -> tuple[str, ...]:
        """The registered redirects; else, when strict, the product's own, and otherwise any of this machine."""
        if self.application.registered is not None:
            return tuple(self.application.registered)
        return (self.sandbox.public_url + CALLBACK_PATH,) if self.sandbox.strict else ()

    def limits_view(self) -> dict[str, Any]:
        """Return Discord's part of GET /control/limits, with the redirects that it compares exactly."""
        slow = {"messages_of_a_channel": limits.POSTS, "renames_of_a_channel": limits.RENAMES}
        each = {
            "role_writes_of_a_guild": limits.MEMBER_ROLE_WRITES,
            "own_guilds_of_a_user": limits.OWN_GUILDS,
            **(slow if self.sandbox.strict else {}),
        }
        return {
            "requests_a_second": limits.GLOBAL_LIMIT,
            "new_commands_a_day": limits.CREATIONS,
            "redirect_uris": list(self.redirects),
            "invalid_requests": {**self.edge.invalid.view(), "shut_for": self.edge.shut_for()},
            **{name: {"requests": limit.requests, "seconds": limit.seconds} for name, limit in each.items()},
        }

    async def world_view(self) -> dict[str, Any]:
        """Return the users and guilds of GET /control/world, without the crowds that only fill a guild."""
        users = [self.person_view(user) for user in self.world.users.values() if not user.bot and not user.crowd]
        return {"users": users, "guilds": [self.guild_view(guild) for guild in self.world.guilds.values()]}

    def person_view(self, user: User) -> dict[str, Any]:
        """Return a person as in GET /control/world; the wallets of people added later are derived from their id."""
        known = {person.id: person.wallets for person in self.sandbox.people}
        wallets = known.get(user.id) or wallets_of(user.id)
        return {"id": user.id, "username": user.username, "wallets": vars(wallets)}

    def routes(self) -> Sequence[web.AbstractRouteDef]:
        """Return all routes below /discord."""
        endpoints = [endpoint for module in _REST for endpoint in module.ENDPOINTS]
        return [
            *self.oauth.routes(),
            *Authorize(self.oauth).routes(),
            *Cdn(self).routes(),
            *endpoint.routes(self.gateway),
            *[route for endpoint in endpoints for route in routes(self, endpoint)],
            web.route("*", "/discord/api/{tail:.*}", self._nothing_here),
        ]

    def user_called(self, name: str) -> User | None:
        """Return the user with this id or username, or the person who had the username at the start."""
        if (known := self.world.users.get(name)) is not None:
            return known
        for user in self.world.users.values():
            if name == user.username:
                return user
        ids = [person.id for person in self.sandbox.people if person.username == name]
        return self.world.users.get(ids[0]) if ids else None

    @property
    def bot_token(self) -> str:
        """The bot's token from `product.env`."""
        return self.sandbox.settings["DISCORD_BOT_TOKEN"]

    def is_bots(self, token: str) -> bool:
        """Return whether it is the bot's token, alone or after the bot's id as in real tokens.

        Some clients read the id.
        """
        return token in (self.bot_token, f"{b64encode(self.bot_id.encode()).decode().rstrip('=')}.{self.bot_token}")

    def caller(self, header: str | None) -> Bot | Bearer | None:
        """Return the caller that an Authorization header names, None without one. Raises 401 for an unknown token."""
        if not header:
            return None
        kind, _, token = header.partition(" ")
        if kind == "Bot" and self.is_bots(token):
            return Bot(self.bot_token)
        grant = self.oauth.bearer(token) if kind == "Bearer" else None
        if grant is None:
            raise unauthorized()
        return Bearer(token, grant)

    async def faulty(self, request: web.Request) -> web.StreamResponse | None:
        """Return what a running fault answers to a REST or token call, or None."""
        answers: dict[str, Answer] = {"429": _throttled, "500": _broken, "empty": _empty, "malformed": _malformed}
        return await self.sandbox.faults.apply(request, "discord", answers)

    async def _nothing_here(self, request: web.Request) -> web.StreamResponse:
        """Answer what no endpoint answers: 405 where the path has other methods, and otherwise 404."""
        faulty = await self.faulty(request)
        if faulty is not None:
            return faulty
        if allowed := await _methods_of(request):
            # RFC 9110 section 15.5.6 demands the header.
            headers = {"Allow": ", ".join(sorted(allowed))}
            return answered({"message": "405: Method Not Allowed", "code": 0}, 405, headers)
        return answered({"message": "404: Not Found", "code": 0}, 404)

    def guild_view(self, guild: Guild) -> dict[str, Any]:
        """Return a guild as in GET /control/world."""
        users = self.world.users
        return {
            "id": guild.id,
            "name": guild.name,
            "owner_id": guild.owner_id,
            "bot_added": self.bot_id in guild.members,
            "roles": [
                {name: role[name] for name in ("id", "name", "position", "permissions", "managed", "color")}
                for role in shapes.roles(guild)
            ],
            "members": [
                {
                    "user_id": member.user_id,
                    "username": users[member.user_id].username,
                    "nick": member.nick,
                    "roles": list(member.roles),
                    "pending": member.pending,
                }
                for member in guild.members.values()
                if not users[member.user_id].crowd
            ],
            "channels": [
                {
                    "id": channel.id,
                    "name": channel.name,
                    "messages": [
                        shapes.message(message, users[message.author_id])
                        for message in self.world.messages[channel.id].values()
                    ],
                }
                for channel in guild.channels.values()
            ],
        }


async def _methods_of(request: web.Request) -> set[str]:
    """Return the methods of the routes with the path of a request, without those of the route for everything."""
    allowed = set[str]()
    for resource in request.app.router.resources():
        allowed |= (await resource.resolve(request))[1]
    return allowed - {hdrs.METH_ANY}


def _throttled(_: web.Request) -> web.Response:
    headers = {
        "Retry-After": "2",
        "X-RateLimit-Limit": "10",
        "X-RateLimit-Remaining": "0",
        "X-RateLimit-Reset": f"{time.time() + 2:.3f}",
        "X-RateLimit-Reset-After": "2.000",
        "X-RateLimit-Bucket": "fa017" * 6,
        "X-RateLimit-Scope": "user",
    }
    return answered(too_many(Verdict(False, "user", 2.0, headers)), 429, headers)


def _broken(_: web.Request) -> web.Response:
    return answered({"message": "500: Internal Server Error", "code": 0}, 500)


def _empty(request: web.Request) -> web.Response:
    is_list = request.method == "GET" and _LISTS.search(request.path) is not None
    return answered([] if is_list else {}, 200)


def _malformed(_: web.Request) -> web.Response:
    return web.Response(body=b'{"id": "11', headers={"Content-Type": "application/json", "Via": "1.1 google"})
