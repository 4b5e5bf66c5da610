"""The three numbers on the dashboard, and the data of its charts."""

from typing import Annotated

from fastapi import Query

from app.api.requests.caller import Caller
from app.api.requests.routers import calls
from app.api.requests.shapes import LEFT_OUT_IF_EMPTY, InternalId, usual_if_empty
from gateways import gateways
from models import transaction
from services.servers import analytics, servers
from services.servers.analytics import AnalyticsView, HistoryView

router = calls("/analytics", tags=["analytics"])


@router.get("")
async def get_totals(caller: Caller) -> AnalyticsView:
    """Return the numbers of members with a proved wallet, of active rules, and of servers with the bot."""
    async with transaction() as db:
        await servers.ask_again(db, gateways(), caller)
        return await analytics.totals(db, caller)


@router.get("/history")
async def get_history(
    caller: Caller,
    days: Annotated[int, usual_if_empty(30), Query()] = 30,
    server_id: Annotated[InternalId | None, LEFT_OUT_IF_EMPTY, Query(alias="serverId")] = None,
) -> HistoryView:
    """Return the events of the last 7, 30 or 90 days in one of the caller's servers, or in all of them together."""
    async with transaction() as db:
        await servers.ask_again(db, gateways(), caller)
        return await analytics.history(db, caller, days, server_id)
