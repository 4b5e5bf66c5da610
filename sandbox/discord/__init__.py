"""A local Discord: OAuth2, REST, gateway and CDN over one world."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    from sandbox.house import Sandbox


class Discord:
    """The Discord of one sandbox."""

    def __init__(self, sandbox: "Sandbox") -> None:
        self.sandbox = sandbox

    async def start(self) -> None:
        """Replay the world."""

    async def stop(self) -> None:
        """Close the gateway."""

    async def reset(self) -> None:
        """Put the world back to the start."""

    async def world(self) -> dict[str, Any]:
        """The users and guilds of GET /control/world."""
        users = [{"id": p.id, "username": p.username, "wallets": vars(p.wallets)} for p in self.sandbox.people]
        return {"users": users, "guilds": []}

    def routes(self) -> Sequence[web.AbstractRouteDef]:
        """Everything below /discord."""
        return []
