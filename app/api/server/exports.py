"""The export of a server as JSON, and of its members as CSV."""

from collections.abc import AsyncGenerator, AsyncIterator

from starlette.responses import StreamingResponse

from app.api.requests.caller import Caller
from app.api.requests.downloads import next_page
from app.api.requests.routers import calls
from app.api.requests.shapes import CSV, ApiAnswer, PathId, attachment
from app.api.server import address_lists
from app.api.server.address_lists import ExportedList
from gateways import gateways
from models import now, transaction
from services.rules.documents import own_format
from services.rules.views import RuleView
from services.servers import csv_tables, export, member_list
from services.servers.member_list import MemberRow

router = calls(tags=["servers"])


class ExportedRole(ApiAnswer):
    """A role of the member's that at least one rule is about."""

    role_id: str
    role_name: str
    granted_by_us: bool


class ExportedMember(ApiAnswer):
    """A member; wallets are shortened, and empty without the member's consent for this server."""

    discord_id: str
    name: str
    verified: bool
    wallets: list[str]
    roles: list[ExportedRole]


class ServerExportAnswer(ApiAnswer):
    """The rules of one server, with their lists of addresses, and its members.

    `format` and `version` are those of `rules.json`, so this document can be imported too.
    """

    format: str = own_format.FORMAT
    version: int = own_format.VERSION
    server_id: int
    exported_at: str
    rules: tuple[RuleView, ...]
    address_lists: list[ExportedList]
    members: list[ExportedMember]


@router.get(
    "/servers/{server_id}/export", response_class=StreamingResponse, responses={200: {"model": ServerExportAnswer}}
)
async def export_server(caller: Caller, server_id: PathId) -> StreamingResponse:
    """Return the server's rules, and its members with the roles that rules are about."""
    async with transaction() as db:
        rules = await export.begin(db, gateways(), caller, server_id)
    empty = ServerExportAnswer(
        server_id=server_id, exported_at=now().isoformat(), rules=rules, address_lists=[], members=[]
    ).model_dump_json(by_alias=True)
    head, middle, end = empty.rpartition('],"members":[')

    async def written() -> AsyncGenerator[str]:
        yield head
        async for part in _with_commas(address_lists.exported(caller, server_id)):
            yield part
        yield middle
        async for part in _with_commas(_members(caller, server_id)):
            yield part
        yield end

    return attachment(written(), f"server-{server_id}.json", "application/json")


@router.get("/servers/{server_id}/members.csv", response_class=StreamingResponse, responses=CSV)
async def download_members(caller: Caller, server_id: PathId) -> StreamingResponse:
    """Return the server's members as CSV in UTF-8."""
    async with transaction() as db:
        await export.begin(db, gateways(), caller, server_id)

    async def written() -> AsyncGenerator[str]:
        yield csv_tables.heading(export.HEAD)
        async for page in _pages(caller, server_id):
            yield export.body(page)

    return attachment(written(), f"members-{server_id}.csv", "text/csv; charset=utf-8")


async def _with_commas(items: AsyncIterator[str]) -> AsyncIterator[str]:
    """Yield the items of a JSON array with commas between them."""
    between = ""
    async for item in items:
        yield between + item
        between = ","


async def _members(caller: Caller, server_id: int) -> AsyncIterator[str]:
    """Yield each member as JSON."""
    async for page in _pages(caller, server_id):
        for row in page:
            yield _member(row).model_dump_json(by_alias=True)


async def _pages(caller: Caller, server_id: int) -> AsyncIterator[tuple[MemberRow, ...]]:
    last = ""
    while True:
        async with next_page(caller, server_id) as db:
            page = await member_list.after(db, server_id, last, export.PAGE)
        if page:
            yield page
            last = page[-1].discord_id
        if len(page) < export.PAGE:
            return


def _member(row: MemberRow) -> ExportedMember:
    held = [role for role in row.roles if role.held]
    return ExportedMember(
        discord_id=row.discord_id,
        name=row.name,
        verified=row.verified,
        wallets=list(row.wallets),
        roles=[ExportedRole.model_validate(role) for role in held],
    )
