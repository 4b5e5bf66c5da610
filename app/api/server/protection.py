"""Members and roles that are protected from removals."""

from app.api.requests.caller import Caller
from app.api.requests.routers import calls
from app.api.requests.shapes import Done, PathId, Payload, Text
from gateways import gateways
from models import transaction
from services.servers import protection
from services.servers.protection import ProtectionView

router = calls("/servers/{server_id}/protection", tags=["protection"])


class ProtectionPayload(Payload):
    """Whether the member or the role is protected from now on."""

    protected: bool


@router.get("")
async def get_protection(caller: Caller, server_id: PathId) -> ProtectionView:
    """Return the protected members and roles."""
    async with transaction() as db:
        return await protection.view(db, gateways(), caller, server_id)


@router.put("/members/{discord_id}")
async def protect_member(caller: Caller, server_id: PathId, discord_id: Text, payload: ProtectionPayload) -> Done:
    """Protect a member from all removals, or end the protection."""
    async with transaction() as db:
        await protection.of_member(db, gateways(), caller, server_id, discord_id, payload.protected)
    return Done()


@router.put("/roles/{role_id}")
async def protect_role(caller: Caller, server_id: PathId, role_id: Text, payload: ProtectionPayload) -> Done:
    """Protect a role from all removals, or end the protection."""
    async with transaction() as db:
        await protection.of_role(db, gateways(), caller, server_id, role_id, payload.protected)
    return Done()
