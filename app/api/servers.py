"""The servers that the caller runs: list, add and refresh them, and check a server's members again."""

from app.api.requests.caller import Caller
from app.api.requests.routers import calls
from app.api.requests.shapes import AcceptedAnswer, ApiAnswer, Done, Loose, PathId, Payload
from gateways import gateways
from locales import _
from models import transaction
from services.servers import servers
from services.servers.servers import ServerView
from services.triggers import sweep

router = calls(tags=["servers"])


class NewServerPayload(Payload):
    """A server to add by hand."""

    discord_server_id: Loose = ""
    server_name: Loose = ""
    server_icon: Loose = ""
    description: Loose = ""


class NewServerAnswer(ApiAnswer):
    """The server as it was added; `id` is our internal id."""

    id: int
    server_name: str
    discord_server_id: str


class SyncAnswer(Done):
    """The number of servers that the caller runs."""

    servers: int


@router.get("/servers")
async def list_servers(caller: Caller) -> list[ServerView]:
    """Return the known servers where the caller is owner or administrator; for an API token, the token's server."""
    async with transaction() as db:
        if caller.token is not None:
            return [await servers.get(db, gateways(), caller, caller.token.server_id)]
        await servers.ask_again(db, gateways(), caller)
        return await servers.list_servers(db, caller)


@router.post("/servers", status_code=201)
async def add_server(caller: Caller, payload: NewServerPayload) -> NewServerAnswer:
    """Add a server that the caller runs, before or without the bot."""
    async with transaction() as db:
        view = await servers.add(
            db,
            gateways(),
            caller,
            payload.discord_server_id,
            payload.server_name,
            payload.server_icon,
            payload.description,
        )
    return NewServerAnswer(id=view.internal_id, server_name=view.name, discord_server_id=view.id)


@router.post("/admin/sync-servers")
async def sync_servers(caller: Caller) -> SyncAnswer:
    """Read the caller's servers from Discord again."""
    async with transaction() as db:
        return SyncAnswer(servers=await servers.sync(db, gateways(), caller))


@router.post("/servers/{server_id}/recheck", status_code=202)
async def recheck_everybody(caller: Caller, server_id: PathId) -> AcceptedAnswer:
    """Queue every member to be checked again soon."""
    async with transaction() as db:
        await sweep.recheck_server(db, gateways(), caller, server_id)
    return AcceptedAnswer(message=_("All members are being checked again."))
