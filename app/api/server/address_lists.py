"""The lists of addresses that rules of a server name: store one, download one."""

from collections.abc import AsyncGenerator, AsyncIterator

from fastapi import Request
from starlette.responses import StreamingResponse

from app.api.requests.caller import Caller
from app.api.requests.downloads import next_page
from app.api.requests.routers import calls
from app.api.requests.shapes import CSV, ApiAnswer, PathId, Text, attachment
from gateways import gateways
from models import transaction
from services.core.errors import ListNotFound
from services.rules.types import stored_address_lists
from services.rules.types.stored_address_lists import StoredList

router = calls(tags=["servers"])


class ExportedList(ApiAnswer):
    """A whole list of addresses that rules name."""

    list: str
    count: int
    addresses: tuple[str, ...]


@router.post(
    "/servers/{server_id}/address-lists",
    status_code=201,
    openapi_extra={"requestBody": {"required": True, "content": {"text/csv": {"schema": {"type": "string"}}}}},
)
async def upload_address_list(caller: Caller, server_id: PathId, request: Request) -> StoredList:
    """Store a list of addresses for a condition that names it: one or more on each line, or a CSV file.

    Mistakes and repetitions are reported with their lines. A list that no rule uses is deleted after a day.
    """
    given = (await request.body()).decode("utf-8", "replace")
    async with transaction() as db:
        return await stored_address_lists.put(db, gateways(), caller, server_id, given)


@router.get("/servers/{server_id}/address-lists/{name}", response_class=StreamingResponse, responses=CSV)
async def download_address_list(caller: Caller, server_id: PathId, name: Text) -> StreamingResponse:
    """Return the addresses of a list as CSV, for people who run the server."""
    async with transaction() as db:
        count = await stored_address_lists.begin_download(db, gateways(), caller, server_id, name)

    async def written() -> AsyncGenerator[str]:
        yield "address\r\n"
        async for page in _addresses(caller, server_id, name, count):
            yield "".join(f"{address}\r\n" for address in page)

    return attachment(written(), f"addresses-{server_id}.csv", "text/csv; charset=utf-8")


async def exported(caller: Caller, server_id: int) -> AsyncIterator[str]:
    """Yield each list of a server's rules as JSON."""
    async with transaction() as db:
        lists = await stored_address_lists.of_server(db, server_id)
    for one in lists:
        pages = _addresses(caller, server_id, one.list, one.count)
        found = [address async for page in pages for address in page]
        yield ExportedList(list=one.list, count=one.count, addresses=tuple(found)).model_dump_json(by_alias=True)


async def _addresses(caller: Caller, server_id: int, digest: str, count: int) -> AsyncIterator[tuple[str, ...]]:
    """Yield all `count` addresses of a list. Raises ListNotFound if it is deleted meanwhile, as `next_page` does."""
    last = ""
    while count > 0:
        async with next_page(caller, server_id) as db:
            page = await stored_address_lists.page(db, server_id, digest, last)
        if not page:
            raise ListNotFound
        yield page
        last, count = page[-1], count - len(page)
