"""The servers that the caller runs, with the export of one as JSON, or of its members as CSV."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import Field, ValidationError
from starlette.responses import Response, StreamingResponse

from app.api.requests.caller import Caller
from app.api.requests.limits import LARGEST_LIST
from app.api.requests.routers import calls
from app.api.requests.shapes import CSV, AcceptedAnswer, ApiAnswer, Loose, PathId, Payload, Text
from gateways import gateways
from locales import _
from models import now, transaction
from services.privacy import payouts
from services.rules.documents import exports, imports, json_documents, own_format
from services.rules.documents.imports import ImportOrder, ImportView
from services.rules.types import stored_lists
from services.rules.types.stored_lists import StoredList
from services.rules.views import RemovalPolicy, RuleView
from services.servers import breaker_review, export, servers
from services.servers.breaker_review import HeldBackView
from services.servers.member_list import MemberRow
from services.servers.servers import ServerView
from services.triggers import sweep

router = calls(tags=["servers"])


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


class ExportedList(ApiAnswer):
    """A list of addresses that rules name, whole."""

    list: str
    count: int
    addresses: tuple[str, ...]


class ServerExportAnswer(ApiAnswer):
    """The rules of one server, with their lists of addresses, and its members.

    `format` and `version` are those of `rules.json`: an import takes this document too.
    """

    format: str = own_format.FORMAT
    version: int = own_format.VERSION
    server_id: int
    exported_at: str
    rules: tuple[RuleView, ...]
    address_lists: list[ExportedList]
    members: list[ExportedMember]


@router.get(
    "/servers/{server_id}/export",
    response_class=StreamingResponse,
    responses={200: {"model": ServerExportAnswer}},
)
async def everything(caller: Caller, server_id: PathId) -> StreamingResponse:
    """Return the server's rules, and its members with the roles that rules are about."""
    async with transaction() as db:
        rules = await export.begin(db, gateways(), caller, server_id)
    empty = ServerExportAnswer(
        server_id=server_id,
        exported_at=now().isoformat(),
        rules=rules,
        address_lists=[],
        members=[],
    ).model_dump_json(by_alias=True)
    head, middle, end = empty.rpartition('],"members":[')

    async def written() -> AsyncIterator[str]:
        yield head
        first = True
        async for one in _lists(server_id):
            yield ("" if first else ",") + one
            first = False
        yield middle
        first = True
        async for page in _pages(server_id):
            for row in page:
                yield ("" if first else ",") + _member(row).model_dump_json(by_alias=True)
                first = False
        yield end

    return _file(written(), f"server-{server_id}.json", "application/json")


class ExportedRule(ApiAnswer):
    """A rule with its role by id and by name, so that another server's role of that name is found."""

    rule_name: str
    role_id: str
    role_name: str
    role_color: str
    expression: dict[str, Any]
    removal: RemovalPolicy
    state: str
    takes_over: bool
    delegated: bool


class RulesDocument(ApiAnswer):
    """All rules of a server as a versioned document, which another server can import."""

    format: str
    version: int
    rules: list[ExportedRule]
    address_lists: list[ExportedList]


@router.get("/servers/{server_id}/rules.json", response_model=RulesDocument)
async def rules_document(caller: Caller, server_id: PathId) -> Response:
    """Return all rules of the server as a document to keep, or to import on another server."""
    async with transaction() as db:
        found = await exports.document(db, gateways(), caller, server_id)
    text = await asyncio.to_thread(json.dumps, found, indent=2, ensure_ascii=False)
    headers = {"Content-Disposition": f'attachment; filename="rules-{server_id}.json"', "Cache-Control": "no-store"}
    return Response(f"{text}\n", media_type="application/json", headers=headers)


class ImportPayload(Payload):
    """A document of rules and where it comes from: `collabland`, `guild` or `holdfast`.

    The document is JSON, or a text of it: at most 1 MiB and 200 rules. With `apply` its rules are made, in shadow;
    `only` chooses some of them by their `number`.
    """

    source: str
    document: Any
    apply: bool = False
    only: list[int] | None = Field(default=None, max_length=1_000)


_ENVELOPE = 1024
"""Bytes of an import's body beside its document."""


@router.post(
    "/servers/{server_id}/import",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": ImportPayload.model_json_schema(by_alias=True)}},
        }
    },
)
async def import_rules(caller: Caller, server_id: PathId, request: Request) -> ImportView:
    """Return what each rule of another bot, or of an export, becomes here, and why some become none.

    With `apply` they are made as rules in shadow, which give and take nothing until somebody activates them.
    """
    async with transaction() as db:
        await imports.allow(db, gateways(), caller, server_id)
    payload = await _order(await request.body())
    order = ImportOrder(payload.source, payload.document, None if payload.only is None else frozenset(payload.only))
    async with transaction() as db:
        bring = imports.apply if payload.apply else imports.preview
        return await bring(db, gateways(), caller, server_id, order)


async def _order(body: bytes) -> ImportPayload:
    """Return the body of an import. Raises DocumentRefused, DocumentTooLarge, RequestValidationError."""
    sent = json_documents.node_of(await json_documents.read(body, largest=LARGEST_LIST))
    document = sent.get("document")
    if not isinstance(document, str) and len(body) > json_documents.LARGEST + _ENVELOPE:
        raise json_documents.DocumentTooLarge
    try:
        # The document itself is checked already.
        payload = ImportPayload.model_validate({**sent, "document": ""} if "document" in sent else sent)
    except ValidationError as fault:
        raise RequestValidationError(fault.errors()) from None
    payload.document = document
    return payload


@router.get("/servers/{server_id}/members.csv", response_class=StreamingResponse, responses=CSV)
async def table(caller: Caller, server_id: PathId) -> StreamingResponse:
    """Return the server's members as CSV in UTF-8."""
    async with transaction() as db:
        await export.begin(db, gateways(), caller, server_id)

    async def written() -> AsyncIterator[str]:
        yield export.head()
        async for page in _pages(server_id):
            yield export.body(page)

    return _file(written(), f"members-{server_id}.csv", "text/csv; charset=utf-8")


@router.get("/servers/{server_id}/payout.csv", response_class=StreamingResponse, responses=CSV)
async def payout_list(
    caller: Caller, server_id: PathId, rule_id: Annotated[int | None, Query(alias="ruleId")] = None
) -> StreamingResponse:
    """Return the payout addresses that members chose for this server, with holdings and block, as CSV in UTF-8."""
    async with transaction() as db:
        await payouts.begin(db, gateways(), caller, server_id, rule_id)

    async def written() -> AsyncIterator[str]:
        yield payouts.head()
        after = ""
        while True:
            async with transaction() as db:
                people = await payouts.page(db, server_id, after)
                rows = await payouts.body(db, caller, server_id, people, rule_id)
            yield rows
            if len(people) < payouts.PAGE:
                return
            after = people[-1].discord_id

    return _file(written(), f"payout-{server_id}.csv", "text/csv; charset=utf-8")


async def _lists(server_id: int) -> AsyncIterator[str]:
    """Yield each list of a server's rules as JSON."""
    async with transaction() as db:
        lists = await stored_lists.of_server(db, server_id)
    for one in lists:
        found = [address async for page in _addresses(server_id, one.list) for address in page]
        yield ExportedList(list=one.list, count=one.count, addresses=tuple(found)).model_dump_json(by_alias=True)


async def _addresses(server_id: int, digest: str) -> AsyncIterator[tuple[str, ...]]:
    last = ""
    while True:
        async with transaction() as db:
            page = await stored_lists.page(db, server_id, digest, last)
        if page:
            yield page
            last = page[-1]
        if len(page) < stored_lists.PAGE:
            return


@router.post(
    "/servers/{server_id}/address-lists",
    status_code=201,
    openapi_extra={"requestBody": {"required": True, "content": {"text/csv": {"schema": {"type": "string"}}}}},
)
async def add_list(caller: Caller, server_id: PathId, request: Request) -> StoredList:
    """Store addresses, one or more a line, or the lines of a CSV file, for a condition that names the list.

    Mistakes and repetitions are reported by their lines. A list that no rule uses is deleted after a day.
    """
    given = (await request.body()).decode("utf-8", "replace")
    async with transaction() as db:
        return await stored_lists.put(db, gateways(), caller, server_id, given)


@router.get("/servers/{server_id}/address-lists/{name}", response_class=StreamingResponse, responses=CSV)
async def one_list(caller: Caller, server_id: PathId, name: Text) -> StreamingResponse:
    """Return the addresses of a list as CSV, for people who run the server."""
    async with transaction() as db:
        await stored_lists.begin_download(db, gateways(), caller, server_id, name)

    async def written() -> AsyncIterator[str]:
        yield "address\r\n"
        async for page in _addresses(server_id, name):
            yield "".join(f"{address}\r\n" for address in page)

    return _file(written(), f"addresses-{server_id}.csv", "text/csv; charset=utf-8")


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


class NewServerPayload(Payload):
    """A server to add by hand."""

    discord_server_id: Loose = ""
    server_name: Loose = ""
    server_icon: Loose = ""
    description: Loose = ""


class NewServerAnswer(ApiAnswer):
    """The server as it was added; `id` is ours."""

    id: int
    server_name: str
    discord_server_id: str


class SyncAnswer(ApiAnswer):
    """The number of servers that the caller runs."""

    success: bool = True
    servers: int


class BreakerPayload(Payload):
    """Whether held-back removals continue, or everybody keeps the role; for one role or all."""

    approve: bool
    role_id: str | None = None


class BreakerAnswer(ApiAnswer):
    """The number of roles whose removals continue now."""

    success: bool = True
    roles: int


@router.get("/servers")
async def run_by_caller(caller: Caller) -> list[ServerView]:
    """Return the known servers where the caller is owner or administrator; for an API token its own."""
    async with transaction() as db:
        if caller.token is not None:
            return [await servers.get(db, gateways(), caller, caller.token.server_id)]
        await servers.ask_again(db, gateways(), caller)
        return await servers.list_servers(db, caller)


@router.post("/servers", status_code=201)
async def add(caller: Caller, payload: NewServerPayload) -> NewServerAnswer:
    """Add a server that the caller runs, before or without the bot."""
    async with transaction() as db:
        view = await servers.add(
            db,
            gateways(),
            caller,
            payload.discord_server_id,
            payload.server_name,
            payload.server_icon,
            payload.description,
        )
    return NewServerAnswer(id=view.internal_id, server_name=view.name, discord_server_id=view.id)


@router.post("/admin/sync-servers")
async def sync(caller: Caller) -> SyncAnswer:
    """Read the caller's servers from Discord again."""
    async with transaction() as db:
        return SyncAnswer(servers=await servers.sync(db, gateways(), caller))


@router.post("/servers/{server_id}/recheck", status_code=202)
async def recheck(caller: Caller, server_id: PathId) -> AcceptedAnswer:
    """Queue every member to be checked again soon."""
    async with transaction() as db:
        await sweep.recheck_server(db, gateways(), caller, server_id)
    return AcceptedAnswer(message=_("All members are being checked again."))


@router.get("/servers/{server_id}/breaker")
async def waiting(caller: Caller, server_id: PathId) -> list[HeldBackView]:
    """Return the removals that wait for an admin: members, roles, the evidence, and earlier changes."""
    async with transaction() as db:
        return await breaker_review.of_server(db, gateways(), caller, server_id)


@router.post("/servers/{server_id}/breaker")
async def breaker(caller: Caller, server_id: PathId, payload: BreakerPayload) -> BreakerAnswer:
    """Approve the removals that were held back because too many would have lost a role, or dismiss them."""
    async with transaction() as db:
        answer = breaker_review.approve if payload.approve else breaker_review.dismiss
        roles = await answer(db, gateways(), caller, server_id, payload.role_id)
    return BreakerAnswer(roles=roles if payload.approve else 0)
