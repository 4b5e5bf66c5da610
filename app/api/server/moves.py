"""A move of roles from another bot: begin it, see who has arrived, and approve its end or undo it."""

from typing import Annotated, Any, Self

from fastapi import Query
from pydantic import Field

from app.api.requests.caller import Caller
from app.api.requests.routers import calls
from app.api.requests.shapes import ApiAnswer, PageNumber, PathId, Payload, Text, TimeFrom, TimeUntil, usual_if_empty
from gateways import gateways
from models import transaction
from services.engine.previews import preview
from services.engine.previews.plan import plan
from services.engine.previews.preview import Impact, MemberImpact
from services.engine.previews.proposals import MoveEnd, Proposal
from services.roles.moves import coverage, lifecycle, views
from services.roles.moves.coverage import HoldersPage
from services.roles.moves.lifecycle import MoveOrder, MoveUndone, SeenMove
from services.roles.moves.views import MoveView

router = calls("/servers/{server_id}/move", tags=["move"])


class SeenMovePayload(Payload):
    """The open move as it was read: its roles in their order, its dates, and its channel."""

    roles: list[str] = Field(max_length=1_000)
    begins_at: TimeFrom
    until: TimeUntil
    channel_id: str | None = None

    @property
    def move(self) -> SeenMove:
        """The move for the services."""
        return SeenMove(tuple(self.roles), self.begins_at, self.until, self.channel_id)


class MovePayload(Payload):
    """A move: the roles that are handed over, until when, from when (now by default), and where to announce it.

    A date without a time is in UTC: `until` means the end of that day, `beginsAt` its start. `seen` is the open move
    that may be replaced, or null if none may be; without the field, it replaces any.
    """

    until: TimeUntil
    roles: list[str] = Field(max_length=1_000)
    begins_at: TimeFrom | None = None
    channel_id: str | None = None
    seen: SeenMovePayload | None = None

    @property
    def may_replace(self) -> SeenMove | None:
        """The open move that this may replace; None for any."""
        return _seen(self)


class MoveApprovalPayload(Payload):
    """The open move whose end is approved, as it was read: `seen` is null if none was open, which approves nothing.

    Without the field, the end of any is approved.
    """

    seen: SeenMovePayload | None = None


def _seen(payload: MovePayload | MoveApprovalPayload) -> SeenMove | None:
    """Return the move that the caller has read; None for any, if the caller names none."""
    if "seen" not in payload.model_fields_set:
        return None
    return SeenMove() if payload.seen is None else payload.seen.move


@router.get("")
async def get_move(caller: Caller, server_id: PathId) -> MoveView:
    """Return the server's move: for each role who has arrived, who has not, and who else gives or takes it."""
    async with transaction() as db:
        return await views.view(db, gateways(), caller, server_id)


@router.put("")
async def set_move(caller: Caller, server_id: PathId, payload: MovePayload) -> MoveView:
    """Begin a move, or change the running one. Nobody loses a role of the move until an admin approves its end.

    With `seen`, a move that somebody else has begun or changed meanwhile is not replaced: the answer is 409.
    """
    order = MoveOrder(payload.until, payload.roles, payload.begins_at, payload.channel_id, payload.may_replace)
    async with transaction() as db:
        is_told = await lifecycle.begin_or_change(db, gateways(), caller, server_id, order)
    async with transaction() as db:
        return await views.view(db, gateways(), caller, server_id, messages_updated=is_told)


@router.delete("")
async def undo_move(caller: Caller, server_id: PathId) -> MoveUndone:
    """Cancel the move, or undo its approved end: roles that it took are given back, and everybody keeps its roles."""
    async with transaction() as db:
        return await lifecycle.undo(db, gateways(), caller, server_id)


@router.get("/members")
async def list_move_members(
    caller: Caller,
    server_id: PathId,
    role_id: Annotated[Text, Query(alias="roleId")],
    standing: Annotated[Text, usual_if_empty(coverage.UNVERIFIED), Query()] = coverage.UNVERIFIED,
    page: PageNumber = 1,
) -> HoldersPage:
    """Return the holders of a role of the move by standing: `right`, `wrong`, `unverified` or `unknown`."""
    async with transaction() as db:
        return await coverage.holders(db, gateways(), caller, server_id, role_id, standing, page)


class MovePreview(ApiAnswer):
    """How many members would gain, keep or lose a role, and their names; `looked` of `concerned` members were read."""

    gain: int
    keep: int
    lose: int
    unknown: int
    members: tuple[MemberImpact, ...]
    looked: int
    concerned: int

    @classmethod
    def of(cls, found: Impact, **more: Any) -> Self:
        """Return the answer about an impact; `more` has the fields that only a subclass has."""
        counts = {outcome: found.count(outcome) for outcome in preview.OUTCOMES}
        return cls(members=found.members, looked=found.looked, concerned=found.concerned, **counts, **more)


async def previewed(caller: Caller, proposal: Proposal) -> MovePreview:
    """Return what a proposed change would do to all members whom it concerns."""
    async with transaction() as db:
        planned = await plan(db, gateways(), caller, proposal)
    return MovePreview.of(await preview.whole(gateways(), planned))


@router.post("/preview")
async def preview_move_end(caller: Caller, server_id: PathId) -> MovePreview:
    """Return what the end of the move would do to members; changes nothing."""
    return await previewed(caller, MoveEnd(server_id))


@router.post("/approve")
async def approve_move(caller: Caller, server_id: PathId, payload: MoveApprovalPayload | None = None) -> MoveView:
    """End the move once its time is over: rules then decide about its roles, and the breaker limits removals.

    With `seen`, the end of a move that somebody else has changed meanwhile is not approved: the answer is 409.
    """
    seen = None if payload is None else _seen(payload)
    async with transaction() as db:
        is_told = await lifecycle.approve(db, gateways(), caller, server_id, seen)
    async with transaction() as db:
        return await views.view(db, gateways(), caller, server_id, messages_updated=is_told)
