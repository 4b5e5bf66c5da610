"""How a server is, for those who run it: each thing with its state, a sentence, and how to mend it."""

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
    """Bot, permissions, role order, providers, lag, last round, what rests and why, each with how to mend it."""
    async with transaction() as db:
        return await server.look(db, gateways(), caller, server_id)
