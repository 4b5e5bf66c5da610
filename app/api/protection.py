"""Members and roles that an admin protects: nothing is taken from them, or for them."""

from datetime import datetime

from fastapi import APIRouter

from app.api.requests.caller import Caller
from app.api.requests.shapes import ApiAnswer, Done, PathId, Payload, Text
from gateways import gateways
from models import transaction
from services.servers import protection

router = APIRouter(prefix="/servers/{server_id}/protection", tags=["protection"])


class ProtectedMemberAnswer(ApiAnswer):
    """A member who keeps every role that we gave them."""

    discord_id: str
    name: str


class ProtectedRoleAnswer(ApiAnswer):
    """A role that nobody loses by us; `by` and `since` tell who protected it and when, as long as the log has it."""

    role_id: str
    role_name: str
    by: str | None
    since: datetime | None


class ProtectionAnswer(ApiAnswer):
    """Everything that is protected in the server."""

    members: list[ProtectedMemberAnswer]
    roles: list[ProtectedRoleAnswer]


class ProtectionPayload(Payload):
    """Whether it is protected from now on."""

    protected: bool


@router.get("")
async def protected(caller: Caller, server_id: PathId) -> ProtectionAnswer:
    """Who and what is protected."""
    async with transaction() as db:
        return ProtectionAnswer.model_validate(await protection.view(db, gateways(), caller, server_id))


@router.put("/members/{discord_id}")
async def protect_member(caller: Caller, server_id: PathId, discord_id: Text, payload: ProtectionPayload) -> Done:
    """Take nothing from a member any more, or go by the rules again."""
    async with transaction() as db:
        await protection.of_member(db, gateways(), caller, server_id, discord_id, payload.protected)
    return Done()


@router.put("/roles/{role_id}")
async def protect_role(caller: Caller, server_id: PathId, role_id: Text, payload: ProtectionPayload) -> Done:
    """Take a role from nobody any more, or go by the rules again."""
    async with transaction() as db:
        await protection.of_role(db, gateways(), caller, server_id, role_id, payload.protected)
    return Done()
