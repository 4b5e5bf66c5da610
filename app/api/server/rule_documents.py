"""All rules of a server as one document, and the import of such a document or of another bot's."""

import asyncio
import json
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import Field, ValidationError
from starlette.responses import Response

from app.api.requests.body_limit import LARGEST_LONG_BODY
from app.api.requests.caller import Caller
from app.api.requests.routers import calls
from app.api.requests.shapes import ApiAnswer, PathId, Payload, disposition
from app.api.server.address_lists import ExportedList
from gateways import gateways
from models import transaction
from services.guilds import permissions
from services.rules.documents import exports, imports, json_documents
from services.rules.documents.imports import ImportOrder, ImportView
from services.rules.views import RemovalPolicy

router = calls(tags=["servers"])


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
async def export_rules(caller: Caller, server_id: PathId) -> Response:
    """Return all rules of the server as a document to keep, or to import on another server."""
    async with transaction() as db:
        found = await exports.document(db, gateways(), caller, server_id)
    text = await asyncio.to_thread(json.dumps, found, indent=2, ensure_ascii=False)
    headers = {"Content-Disposition": disposition(f"rules-{server_id}.json"), "Cache-Control": "no-store"}
    return Response(f"{text}\n", media_type="application/json", headers=headers)


class ImportPayload(Payload):
    """A document of rules and where it comes from: `collabland`, `guild` or `holdfast`.

    The document is JSON, or a string with that JSON: at most 1 MiB and 200 rules. With `apply` its rules are created
    in shadow; `only` chooses some of them by their `number`.
    """

    source: str
    document: Any
    apply: bool = False
    only: list[int] | None = Field(default=None, max_length=1_000)


_ENVELOPE = 1024
"""Bytes that the body of an import may have besides its document."""


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
    """Return which rule each rule of another bot or of an export becomes here, and why some cannot be imported.

    With `apply` they are created as rules in shadow, which give and take nothing until somebody activates them.
    """
    async with transaction() as db:
        # Only an admin's document is parsed.
        await permissions.require_admin_to_read(db, gateways(), caller, server_id)
    payload = await _order(await request.body())
    order = ImportOrder(payload.source, payload.document, None if payload.only is None else frozenset(payload.only))
    async with transaction() as db:
        bring = imports.apply if payload.apply else imports.preview
        return await bring(db, gateways(), caller, server_id, order)


async def _order(body: bytes) -> ImportPayload:
    """Return the body of an import. Raises DocumentRefused, DocumentTooLarge, RequestValidationError."""
    sent = json_documents.node_of(await json_documents.read(body, largest=LARGEST_LONG_BODY))
    document = sent.get("document")
    if not isinstance(document, str) and len(body) > json_documents.LARGEST_DOCUMENT + _ENVELOPE:
        raise json_documents.DocumentTooLarge
    try:
        # The document itself is checked already.
        payload = ImportPayload.model_validate({**sent, "document": ""} if "document" in sent else sent)
    except ValidationError as fault:
        raise RequestValidationError(fault.errors()) from None
    payload.document = document
    return payload
