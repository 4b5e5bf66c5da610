"""The protocols of the local Discord and of its gateway, so that no part of it has to import the whole."""

from typing import Any, Protocol

from aiohttp import web

from sandbox.base.sandbox import Sandbox
from sandbox.discord.world.application import Application
from sandbox.discord.world.entities import User
from sandbox.discord.world.world import World


class Events(Protocol):
    """The gateway as seen by code that makes something happen."""

    def dispatch(self, guild_id: str, event: str, data: dict[str, Any], intent: int) -> int:
        """Send an event to each session with the guild and the intent (0: none needed), if the bot is in the guild.

        Returns how many connected clients it was sent to; others receive it when they resume.
        """
        ...

    def end_outage(self, guild_id: str, *, tell: bool = True) -> None:
        """Make the guild available again; with `tell`, every session that has it receives the guild."""
        ...


class Discord(Protocol):
    """The world, the events that it sends, and the bot that it belongs to."""

    sandbox: Sandbox
    bot_id: str
    """The id of the application and of its bot."""
    world: World

    @property
    def application(self) -> Application:
        """The application's settings in the Developer Portal."""
        ...

    @property
    def redirects(self) -> tuple[str, ...]:
        """The addresses to which OAuth2 sends people back; empty where every address of this machine will do."""
        ...

    @property
    def gateway(self) -> Events:
        """The gateway, which sends the events."""
        ...

    def user_called(self, name: str) -> User | None:
        """Return the user with this id or username, or the person who had the username at the start."""
        ...

    def is_bots(self, token: str) -> bool:
        """Return whether it is the bot's token."""
        ...

    async def faulty(self, request: web.Request) -> web.StreamResponse | None:
        """Return what a running fault answers to a REST or token call, or None."""
        ...
