"""Data from Discord: the caller's servers, a server's roles, and the URLs that invite the bot."""

from typing import Annotated

from fastapi import Query

from app.api.requests.caller import Caller
from app.api.requests.routers import calls
from app.api.requests.shapes import ApiAnswer, Text
from gateways import gateways
from locales import _
from models import transaction
from services.core.errors import FieldRefused
from services.servers import servers
from services.servers.servers import GuildView, RoleView

router = calls("/discord", tags=["discord"])
ServerId = Annotated[Text, Query(alias="serverId")]
"""Discord's id of a server."""


class InviteAnswer(ApiAnswer):
    """The URL of Discord's page that adds the bot."""

    invite_url: str


@router.get("/invite")
async def get_invite(caller: Caller) -> InviteAnswer:
    """Return the URL that adds the bot to a server that the person chooses there."""
    return InviteAnswer(invite_url=servers.navigation_invite_url(gateways()))


@router.get("/invite-url")
async def get_invite_url(caller: Caller, server_id: ServerId) -> InviteAnswer:
    """Return the URL that adds the bot to this server."""
    if not (server_id.isascii() and server_id.isdigit() and len(server_id) <= 20):
        raise FieldRefused("serverId", _("The server id must be Discord's: digits only."))
    return InviteAnswer(invite_url=servers.invite_url(gateways(), server_id))


@router.get("/servers")
async def list_discord_servers(caller: Caller) -> list[GuildView]:
    """Return the caller's servers on Discord where they are owner or administrator."""
    async with transaction() as db:
        return await servers.invite_list(db, gateways(), caller)


@router.get("/roles")
async def list_roles(caller: Caller, server_id: ServerId) -> list[RoleView]:
    """Return the roles of a server that the caller runs, without @everyone."""
    async with transaction() as db:
        return await servers.roles(db, gateways(), caller, server_id)
