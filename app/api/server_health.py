"""The health of a server, for people who run it: each part with its state, a sentence, and the remedy."""

from fastapi import APIRouter

from app.api.requests.caller import Caller
from app.api.requests.shapes import PathId
from gateways import gateways
from models import transaction
from services.health import server
from services.health.views import HealthView

router = APIRouter(prefix="/servers/{server_id}/health", tags=["server health"])


@router.get("")
async def look(caller: Caller, server_id: PathId) -> HealthView:
    """Return bot, permissions, role order, providers, lag, last sweep, and pauses, each with its cause and remedy."""
    async with transaction() as db:
        return await server.look(db, gateways(), caller, server_id)
