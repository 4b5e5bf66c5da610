"""What the parts of the local Discord ask of the whole, so that no part imports it."""

from typing import Any, Protocol

from aiohttp import web

from sandbox.base.sandbox import Sandbox
from sandbox.discord.world.application import Application
from sandbox.discord.world.entities import User
from sandbox.discord.world.world import World


class Events(Protocol):
    """The gateway as those see it who make something happen."""

    def dispatch(self, guild_id: str, event: str, data: dict[str, Any], intent: int) -> int:
        """Tell every session that has the guild and the intent (0: no intent needed), if the bot is in the guild.

        Returns how many connected clients it was sent to; others find it when they resume.
        """
        ...

    def end_outage(self, guild_id: str, *, tell: bool = True) -> None:
        """Make the guild available again; with `tell`, every session that has it hears so."""
        ...


class Discord(Protocol):
    """The world, the events that it sends, and whose bot it is."""

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox that it is part of."""
        ...

    @property
    def bot_id(self) -> str:
        """The id of the application and of its bot."""
        ...

    @property
    def world(self) -> World:
        """Everything that Discord remembers."""
        ...

    @property
    def application(self) -> Application:
        """The application's settings in the Developer Portal."""
        ...

    @property
    def gateway(self) -> Events:
        """Where events go."""
        ...

    def user_called(self, name: str) -> User | None:
        """The user with this id or username, or the person who had the username at the start."""
        ...

    def is_bots(self, token: str) -> bool:
        """Whether it is the bot's token."""
        ...

    async def faulty(self, request: web.Request) -> web.StreamResponse | None:
        """What a running fault makes of a REST or token call."""
        ...
