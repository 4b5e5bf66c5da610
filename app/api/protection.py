"""What is not taken: from protected members, protected roles from anybody, and a move's roles until its end."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import Query
from pydantic import AfterValidator, BeforeValidator, Field

from app.api.requests.caller import Caller
from app.api.requests.routers import calls
from app.api.requests.shapes import ApiAnswer, Done, PathId, Payload, Text
from gateways import gateways
from models import transaction
from services.engine import preview as impact
from services.engine.preview import MemberImpact, Proposal
from services.roles.moves import coverage, orders, views
from services.roles.moves.coverage import HoldersPage
from services.roles.moves.orders import MoveOrder, MoveUndone
from services.roles.moves.views import MoveView
from services.servers import protection
from services.servers.protection import ProtectionView

router = calls("/servers/{server_id}/protection", tags=["protection"])
moves = calls("/servers/{server_id}/move", tags=["move"])


class ProtectionPayload(Payload):
    """Whether it is protected from now on."""

    protected: bool


@router.get("")
async def protected(caller: Caller, server_id: PathId) -> ProtectionView:
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


def _start_of_day(given: object) -> object:
    return f"{given}T00:00:00Z" if isinstance(given, str) and len(given) == len("2027-01-31") else given


def _end_of_day(given: object) -> object:
    return f"{given}T23:59:59Z" if isinstance(given, str) and len(given) == len("2027-01-31") else given


def _in_utc(given: datetime) -> datetime:
    return given if given.tzinfo is not None else given.replace(tzinfo=UTC)


From = Annotated[datetime, BeforeValidator(_start_of_day), AfterValidator(_in_utc)]
Until = Annotated[datetime, BeforeValidator(_end_of_day), AfterValidator(_in_utc)]
"""A time in UTC, or a date alone: then the start or the end of that day."""


class MovePayload(Payload):
    """A move: the roles that are handed over, until when, from when (now by default), and where to announce it.

    A date without a time is meant in UTC: `until` to the end of that day, `beginsAt` from its start.
    """

    until: Until
    roles: list[str] = Field(max_length=1_000)
    begins_at: From | None = None
    channel_id: str | None = None


@moves.get("")
async def move(caller: Caller, server_id: PathId) -> MoveView:
    """Return the server's move: per role who has arrived, who has not, and who else moves it."""
    async with transaction() as db:
        return await views.view(db, gateways(), caller, server_id)


@moves.put("")
async def put_move(caller: Caller, server_id: PathId, payload: MovePayload) -> MoveView:
    """Begin a move, or change the one that runs. Until an admin approves its end nobody loses a role of it."""
    order = MoveOrder(payload.until, payload.roles, payload.begins_at, payload.channel_id)
    async with transaction() as db:
        is_told = await orders.put(db, gateways(), caller, server_id, order)
    async with transaction() as db:
        return await views.view(db, gateways(), caller, server_id, messages_updated=is_told)


@moves.delete("")
async def undo_move(caller: Caller, server_id: PathId) -> MoveUndone:
    """Call the move off, or undo it after its approval: what it took is given back, and everybody keeps its roles."""
    async with transaction() as db:
        return await orders.undo(db, gateways(), caller, server_id)


@moves.get("/members")
async def move_members(
    caller: Caller,
    server_id: PathId,
    role_id: Annotated[Text, Query(alias="roleId")],
    standing: Text = coverage.UNVERIFIED,
    page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
) -> HoldersPage:
    """Return the holders of a role of the move by standing: `right`, `wrong`, `unverified` or `unknown`."""
    async with transaction() as db:
        return await coverage.holders(db, gateways(), caller, server_id, role_id, standing, page)


class MovePreview(ApiAnswer):
    """How many would gain, keep or lose a role at the end, and their names; `looked` of `concerned` were read."""

    gain: int
    keep: int
    lose: int
    unknown: int
    members: tuple[MemberImpact, ...]
    looked: int
    concerned: int


@moves.post("/preview")
async def preview_end(caller: Caller, server_id: PathId) -> MovePreview:
    """Return what the end of the move would do to members; changes nothing."""
    async with transaction() as db:
        plan = await impact.plan(db, gateways(), caller, Proposal(server_id=server_id, ends_move=True))
    found = await impact.whole(gateways(), plan)
    counts = {outcome: found.count(outcome) for outcome in impact.OUTCOMES}
    return MovePreview(members=found.members, looked=found.looked, concerned=found.concerned, **counts)


@moves.post("/approve")
async def approve_end(caller: Caller, server_id: PathId) -> MoveView:
    """End the move once its time is over: rules decide about its roles, and removals pass the breaker."""
    async with transaction() as db:
        is_told = await orders.approve(db, gateways(), caller, server_id)
    async with transaction() as db:
        return await views.view(db, gateways(), caller, server_id, messages_updated=is_told)
