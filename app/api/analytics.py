"""The three numbers on the dashboard, and what its charts show."""

from datetime import date
from typing import Annotated

from fastapi import APIRouter, Query

from app.api.requests.caller import Caller
from app.api.requests.shapes import ApiAnswer, InternalId
from gateways import gateways
from models import transaction
from services.servers import analytics, servers

router = APIRouter(prefix="/analytics", tags=["analytics"])


class AnalyticsAnswer(ApiAnswer):
    """Counts over the servers that the caller runs."""

    total_verifications: int
    active_rules: int
    connected_servers: int


class RuleHistoryAnswer(ApiAnswer):
    """A rule and how many members had its role by it at the end of each day."""

    id: int
    name: str
    server_name: str
    holders: list[int]


class HistoryAnswer(ApiAnswer):
    """Counts per day, in UTC; every series is as long as `days`."""

    days: list[date]
    proofs: list[int]
    roles_given: list[int]
    roles_taken: list[int]
    rules: list[RuleHistoryAnswer]


@router.get("")
async def totals(caller: Caller) -> AnalyticsAnswer:
    """Members with a proved wallet, rules in force, servers with the bot."""
    async with transaction() as db:
        await servers.ask_again(db, gateways(), caller)
        return AnalyticsAnswer.model_validate(await analytics.totals(db, caller))


@router.get("/history")
async def history(
    caller: Caller, days: int = 30, server_id: Annotated[InternalId | None, Query(alias="serverId")] = None
) -> HistoryAnswer:
    """What happened in the last 7, 30 or 90 days in one of the caller's servers, or in all of them together."""
    async with transaction() as db:
        await servers.ask_again(db, gateways(), caller)
        return HistoryAnswer.model_validate(await analytics.history(db, caller, days, server_id))
