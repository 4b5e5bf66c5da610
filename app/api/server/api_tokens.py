"""The API tokens of a server, with which its admins' programs call."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated

from fastapi import Query, Response
from pydantic import BaseModel, ConfigDict, Field

from app.api.requests.caller import Caller
from app.api.requests.routers import calls
from app.api.requests.shapes import Done, InternalId, Loose, PathId, Payload
from gateways import gateways
from models import transaction
from services.accounts.developers import api_tokens
from services.accounts.developers.api_tokens import SCOPES, ApiTokenView
from services.core.json_view import json_view

router = calls("/servers/{server_id}", tags=["programs"])


class NewTokenPayload(Payload):
    """A token to create: `scopes` are some of `read`, `rules` and `members`.

    It expires after 90 days unless `expiresAt` says otherwise, and after a year and a day at the latest.
    """

    name: Loose = ""
    scopes: list[str] = Field(default_factory=list, max_length=2 * len(SCOPES))
    expires_at: datetime | None = None


@json_view
class NewTokenAnswer(ApiTokenView):
    """The token, which is shown only this once, and its fields in the list of tokens."""

    token: str


class RevokedAnswer(Done):
    """How many tokens were revoked."""

    revoked: int


@router.get("/tokens")
async def list_tokens(caller: Caller, server_id: PathId) -> tuple[ApiTokenView, ...]:
    """Return the server's API tokens, the newest first, without the tokens themselves."""
    async with transaction() as db:
        return await api_tokens.list_of(db, gateways(), caller, server_id)


@router.post("/tokens", status_code=201)
async def create_token(caller: Caller, server_id: PathId, payload: NewTokenPayload, answer: Response) -> NewTokenAnswer:
    """Create an API token of the server. It has no more rights than its creator has at the time of each call."""
    async with transaction() as db:
        made = await api_tokens.create(
            db, gateways(), caller, server_id, payload.name, payload.scopes, payload.expires_at
        )  # fmt: skip
    answer.headers["Cache-Control"] = "no-store"
    return NewTokenAnswer(token=made.token, **asdict(made.view))


class RevokedTokens(BaseModel):
    """Which token to revoke: all without an `id`. A misspelt one is refused, because it would revoke all of them."""

    model_config = ConfigDict(extra="forbid")

    id: InternalId | None = None


@router.delete("/tokens")
async def revoke_tokens(caller: Caller, server_id: PathId, which: Annotated[RevokedTokens, Query()]) -> RevokedAnswer:
    """Revoke all API tokens of the server, or the one with this `id`; they stop at once."""
    async with transaction() as db:
        return RevokedAnswer(revoked=await api_tokens.revoke(db, gateways(), caller, server_id, which.id))


@router.delete("/tokens/{token_id}")
async def revoke_token(caller: Caller, server_id: PathId, token_id: PathId) -> RevokedAnswer:
    """Revoke an API token of the server; it stops at once."""
    async with transaction() as db:
        return RevokedAnswer(revoked=await api_tokens.revoke(db, gateways(), caller, server_id, token_id))
