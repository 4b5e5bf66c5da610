"""Removals that the breaker holds back in a server, and the admin's answer."""

from pydantic import AwareDatetime, model_validator

from app.api.requests.caller import Caller
from app.api.requests.routers import calls
from app.api.requests.shapes import Done, PathId, Payload
from gateways import gateways
from models import transaction
from services.servers import breaker_review
from services.servers.breaker_review import HeldBackView, Trip

router = calls(tags=["servers"])


class SeenPayload(Payload):
    """The removals of the role as they were shown: `trippedAt` and `total` of the call that lists them."""

    tripped_at: AwareDatetime
    total: int


class BreakerPayload(Payload):
    """Whether held-back removals continue, or everybody keeps the role; for one role or all.

    With `seen`, nothing happens (409) if the breaker has tripped again or more members wait than were shown.
    """

    approve: bool
    role_id: str | None = None
    seen: SeenPayload | None = None

    @model_validator(mode="after")
    def _seen_is_of_one_role(self) -> "BreakerPayload":
        if self.seen is not None and not self.role_id:
            raise ValueError("`seen` is about one role: send its `roleId` too")
        return self


class BreakerAnswer(Done):
    """The number of roles whose removals continue now."""

    roles: int


@router.get("/servers/{server_id}/breaker")
async def list_held_back_removals(caller: Caller, server_id: PathId) -> list[HeldBackView]:
    """Return the removals that wait for an admin: members, roles, the evidence, and earlier changes."""
    async with transaction() as db:
        return await breaker_review.of_server(db, gateways(), caller, server_id)


@router.post("/servers/{server_id}/breaker")
async def decide_removals(caller: Caller, server_id: PathId, payload: BreakerPayload) -> BreakerAnswer:
    """Approve the removals that were held back because too many would have lost a role, or dismiss them."""
    async with transaction() as db:
        seen = None if payload.seen is None else Trip(payload.seen.tripped_at, payload.seen.total)
        roles = await breaker_review.decide(
            db, gateways(), caller, server_id, payload.role_id, seen, approve=payload.approve
        )
    return BreakerAnswer(roles=roles if payload.approve else 0)
