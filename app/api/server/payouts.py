"""The payout addresses that members chose for a server, as CSV."""

from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import Query
from starlette.responses import StreamingResponse

from app.api.requests.caller import Caller
from app.api.requests.downloads import next_page
from app.api.requests.routers import calls
from app.api.requests.shapes import CSV, LEFT_OUT_IF_EMPTY, PathId, attachment
from gateways import gateways
from models import transaction
from services.privacy import payouts
from services.servers import csv_tables

router = calls(tags=["servers"])


@router.get("/servers/{server_id}/payout.csv", response_class=StreamingResponse, responses=CSV)
async def download_payouts(
    caller: Caller, server_id: PathId, rule_id: Annotated[int | None, LEFT_OUT_IF_EMPTY, Query(alias="ruleId")] = None
) -> StreamingResponse:
    """Return the payout addresses that members chose for this server, with holdings and block, as CSV in UTF-8."""
    async with transaction() as db:
        most = await payouts.begin(db, gateways(), caller, server_id, rule_id)

    async def written() -> AsyncGenerator[str]:
        yield csv_tables.heading(payouts.HEAD)
        after = ""
        while True:
            async with next_page(caller, server_id) as db:
                people = await payouts.page(db, server_id, after, most)
                rows = await payouts.body(db, caller, server_id, people, rule_id)
            yield rows
            if len(people) < most:
                return
            after = people[-1].discord_id

    return attachment(written(), f"payout-{server_id}.csv", "text/csv; charset=utf-8")
