"""The three numbers on the dashboard."""

from fastapi import APIRouter

from app.api.caller import Caller
from app.api.shapes import Answer
from models import transaction
from services import analytics

router = APIRouter(prefix="/analytics", tags=["analytics"])


class AnalyticsAnswer(Answer):
    """Counts over the servers that the caller runs."""

    total_verifications: int
    active_rules: int
    connected_servers: int


@router.get("")
async def totals(caller: Caller) -> AnalyticsAnswer:
    """Members with a proved wallet, rules in force, servers with the bot."""
    async with transaction() as db:
        return AnalyticsAnswer.model_validate(await analytics.totals(db, caller))
