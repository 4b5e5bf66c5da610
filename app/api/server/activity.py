"""A server's audit log: read it with filters, download it as CSV, and undo batches of changes."""

from collections.abc import AsyncGenerator
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Query
from pydantic import Field
from starlette.responses import StreamingResponse

from app.api.requests.caller import Caller
from app.api.requests.downloads import next_page
from app.api.requests.examples import PERIOD
from app.api.requests.routers import calls
from app.api.requests.shapes import (
    CSV,
    LEFT_OUT_IF_EMPTY,
    PathId,
    Text,
    TimeFrom,
    TimeUntil,
    attachment,
    usual_if_empty,
)
from gateways import gateways
from models import transaction
from services.core.errors import BatchNotFound
from services.servers import activity, csv_tables, undo
from services.servers.activity import LogFilter, LogLine
from services.servers.undo import UndoView

router = calls("/servers/{server_id}", tags=["events"])

CSV_PAGE = 200
"""Lines that a download reads at a time: the log may exceed the memory, and one line may contain two large rules."""

_RuleNumber = Annotated[int, Field(ge=1, le=2**31 - 1)]
_LineNumber = Annotated[int, Field(ge=1, le=2**62)]


def _filter(
    kind: Text = "",
    member: Text = "",
    actor: Text = "",
    role_id: Annotated[Text, Query(alias="roleId")] = "",
    rule_id: Annotated[_RuleNumber | None, LEFT_OUT_IF_EMPTY, Query(alias="ruleId")] = None,
    since: Annotated[TimeFrom | None, LEFT_OUT_IF_EMPTY, Query(description=PERIOD)] = None,
    until: Annotated[TimeUntil | None, LEFT_OUT_IF_EMPTY, Query(description=PERIOD)] = None,
) -> LogFilter:
    """Return the filter of a request.

    It may name kinds or families of events (`role.taken,rule`), a member (part of a name, or an id), the person who
    acted (`itself` if the product acted), a role, a rule, and a period.
    """
    return LogFilter(kind, member, role_id, rule_id, actor, None, since, until)


Filter = Annotated[LogFilter, Depends(_filter)]


def _batch(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise BatchNotFound from None


@router.get("/events")
async def list_events(
    caller: Caller,
    server_id: PathId,
    wanted: Filter,
    before: Annotated[_LineNumber | None, LEFT_OUT_IF_EMPTY, Query()] = None,
    limit: Annotated[int, Field(ge=1, le=200), usual_if_empty(50), Query()] = 50,
) -> list[LogLine]:
    """Return the events, newest first; `before` is the id of the last line of the previous page."""
    async with transaction() as db:
        return await activity.read(db, gateways(), caller, server_id, wanted, before=before, limit=limit)


@router.get("/events.csv", response_class=StreamingResponse, responses=CSV)
async def download_events(caller: Caller, server_id: PathId, wanted: Filter) -> StreamingResponse:
    """Return the log as CSV in UTF-8, newest first, with the same filters."""
    async with transaction() as db:
        first = await activity.read(db, gateways(), caller, server_id, wanted, limit=CSV_PAGE)

    async def written() -> AsyncGenerator[str]:
        page = first
        yield csv_tables.heading(csv_tables.LOG_COLUMNS) + csv_tables.log_rows(page)
        while len(page) == CSV_PAGE:
            async with next_page(caller, server_id) as db:
                page = await activity.lines(db, server_id, wanted, before=page[-1].id, limit=CSV_PAGE)
            yield csv_tables.log_rows(page)

    return attachment(written(), f"activity-{server_id}.csv", "text/csv; charset=utf-8")


@router.get("/events/{batch}/undo")
async def preview_undo(caller: Caller, server_id: PathId, batch: Text) -> UndoView:
    """Return what undoing the batch would do; nothing is changed."""
    async with transaction() as db:
        return await undo.preview(db, gateways(), caller, server_id, _batch(batch))


@router.post("/events/{batch}/undo")
async def undo_batch(caller: Caller, server_id: PathId, batch: Text) -> UndoView:
    """Undo one batch: a rule's deletion, change or pause, or removals made together."""
    async with transaction() as db:
        return await undo.undo(db, gateways(), caller, server_id, _batch(batch))
