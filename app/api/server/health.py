"""The health of a server, for people who run it: each part with its state, a sentence, and the remedy."""

from app.api.requests.caller import Caller
from app.api.requests.routers import calls
from app.api.requests.shapes import ApiAnswer, PathId, Payload
from gateways import gateways
from models import transaction
from services.health import server_health
from services.health.views import HealthView
from services.roles import rival_reports

router = calls("/servers/{server_id}/health", tags=["server health"])


@router.get("")
async def get_health(caller: Caller, server_id: PathId) -> HealthView:
    """Return bot, permissions, role order, providers, lag, last sweep, and pauses, each with its cause and remedy."""
    async with transaction() as db:
        return await server_health.view(db, gateways(), caller, server_id)


class FollowAgainPayload(Payload):
    """The role, and one member unless the call is about all of them."""

    role_id: str
    discord_id: str | None = None


class FollowAgainAnswer(ApiAnswer):
    """The number of members for whom the rules decide about the role again."""

    members: int


@router.post("/follow-again")
async def follow_again(caller: Caller, server_id: PathId, payload: FollowAgainPayload) -> FollowAgainAnswer:
    """Let rules give and take a role again that was left alone because others had reversed it repeatedly."""
    async with transaction() as db:
        ended = await rival_reports.follow_again(db, gateways(), caller, server_id, payload.role_id, payload.discord_id)
    return FollowAgainAnswer(members=ended)
