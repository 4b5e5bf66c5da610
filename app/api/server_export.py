"""A server to take along, for those who run it: everything as JSON, or its members as a table."""

from collections.abc import AsyncIterator

from fastapi import APIRouter
from starlette.responses import StreamingResponse

from app.api.requests.caller import Caller
from app.api.requests.shapes import ApiAnswer, PathId
from app.api.rules import RuleAnswer, rule_answer
from gateways import gateways
from models import now, transaction
from services.servers import export
from services.servers.member_list import MemberRow

router = APIRouter(prefix="/servers/{server_id}", tags=["server export"])


class ExportedRole(ApiAnswer):
    """A role that rules are about and that the member has."""

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
    """The rules and members of one server."""

    server_id: int
    exported_at: str
    rules: list[RuleAnswer]
    members: list[ExportedMember]


@router.get("/export", response_class=StreamingResponse, responses={200: {"model": ServerExportAnswer}})
async def everything(caller: Caller, server_id: PathId) -> StreamingResponse:
    """The server's rules, and its members with the roles that rules are about."""
    async with transaction() as db:
        rules = await export.begin(db, gateways(), caller, server_id)
    empty = ServerExportAnswer(
        server_id=server_id,
        exported_at=now().isoformat(),
        rules=list(map(rule_answer, rules)),
        members=[],
    ).model_dump_json(by_alias=True)

    async def written() -> AsyncIterator[str]:
        yield empty.removesuffix("]}")
        first = True
        async for page in _pages(server_id):
            for row in page:
                yield ("" if first else ",") + _member(row).model_dump_json(by_alias=True)
                first = False
        yield "]}"

    return _file(written(), f"server-{server_id}.json", "application/json")


@router.get("/members.csv", response_class=StreamingResponse)
async def table(caller: Caller, server_id: PathId) -> StreamingResponse:
    """The server's members as CSV in UTF-8."""
    async with transaction() as db:
        await export.begin(db, gateways(), caller, server_id)

    async def written() -> AsyncIterator[str]:
        yield export.head()
        async for page in _pages(server_id):
            yield export.body(page)

    return _file(written(), f"members-{server_id}.csv", "text/csv; charset=utf-8")


async def _pages(server_id: int) -> AsyncIterator[tuple[MemberRow, ...]]:
    last = ""
    while True:
        async with transaction() as db:
            page = await export.members(db, server_id, last)
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


def _file(content: AsyncIterator[str], name: str, kind: str) -> StreamingResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return StreamingResponse(content, media_type=kind, headers=headers)
