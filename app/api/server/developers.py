"""For an admin's programs: the API tokens of a server, and its webhook."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated

from fastapi import Query, Response
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from app.api.requests.caller import Caller
from app.api.requests.routers import calls
from app.api.requests.shapes import AcceptedAnswer, ApiAnswer, Done, InternalId, Loose, PathId, Payload
from gateways import gateways
from locales import _
from models import transaction
from services.accounts.developers import api_tokens, webhooks
from services.accounts.developers.api_tokens import SCOPES, ApiTokenView
from services.accounts.developers.webhooks import EVENTS, WebhookView

router = calls("/servers/{server_id}", tags=["programs"])


class NewTokenPayload(Payload):
    """A token to create: `scopes` are some of `read`, `rules` and `members`.

    It expires after 90 days unless `expiresAt` says otherwise, and after a year and a day at the latest.
    """

    name: Loose = ""
    scopes: list[str] = Field(default_factory=list, max_length=2 * len(SCOPES))
    expires_at: datetime | None = None


class NewTokenAnswer(ApiAnswer):
    """The token, which is shown only this once, and its fields in the list of tokens."""

    id: int
    name: str
    token: str
    prefix: str
    scopes: tuple[str, ...]
    state: str
    created_by: str
    created_at: datetime
    used_at: datetime | None
    expires_at: datetime


class RevokedAnswer(ApiAnswer):
    """How many tokens were revoked."""

    success: bool = True
    revoked: int


@router.get("/tokens")
async def list_tokens(caller: Caller, server_id: PathId) -> tuple[ApiTokenView, ...]:
    """Return the server's API tokens, the newest first, without the tokens themselves."""
    async with transaction() as db:
        return await tokens.list_of(db, gateways(), caller, server_id)


@router.post("/tokens", status_code=201)
async def create_token(caller: Caller, server_id: PathId, payload: NewTokenPayload, answer: Response) -> NewTokenAnswer:
    """Create an API token of the server. It has no more rights than its creator has at the time of each call."""
    async with transaction() as db:
        made = await tokens.create(
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
        return RevokedAnswer(revoked=await tokens.revoke(db, gateways(), caller, server_id, which.id))


@router.delete("/tokens/{token_id}")
async def revoke_token(caller: Caller, server_id: PathId, token_id: PathId) -> RevokedAnswer:
    """Revoke an API token of the server; it stops at once."""
    async with transaction() as db:
        return RevokedAnswer(revoked=await tokens.revoke(db, gateways(), caller, server_id, token_id))


class WebhookPayload(Payload):
    """Where to post which events: `role.given`, `role.taken`, `wallet.proved`, `rule.changed`, `breaker.tripped`.

    `newSecret` replaces the secret; for a day, deliveries are signed with the former one as well.
    """

    url: Loose = ""
    events: list[str] = Field(default_factory=list, max_length=2 * len(EVENTS))
    new_secret: StrictBool = False


class WebhookAnswer(ApiAnswer):
    """The webhook as it is now; `secret` is shown only once, right after it was made."""

    webhook: WebhookView
    secret: str | None
    url: str
    events: tuple[str, ...]


@router.get("/webhook")
async def get_webhook(caller: Caller, server_id: PathId) -> WebhookView:
    """Return the server's webhook without its secret, and its newest deliveries."""
    async with transaction() as db:
        return await webhooks.view(db, gateways(), caller, server_id)


@router.put("/webhook")
async def set_webhook(caller: Caller, server_id: PathId, payload: WebhookPayload, answer: Response) -> WebhookAnswer:
    """Set the address to which the server's events are posted, signed; the first call returns the secret."""
    async with transaction() as db:
        now = await webhooks.put(
            db, gateways(), caller, server_id, payload.url, payload.events, new_secret=payload.new_secret
        )
    answer.headers["Cache-Control"] = "no-store"
    return WebhookAnswer(webhook=now.view, secret=now.secret, url=now.view.url, events=now.view.events)


@router.post("/webhook/test", status_code=202)
async def send_test_event(caller: Caller, server_id: PathId) -> AcceptedAnswer:
    """Queue a test event for the webhook."""
    async with transaction() as db:
        await webhooks.send_test(db, gateways(), caller, server_id)
    return AcceptedAnswer(message=_("The test event is sent within seconds."))


@router.delete("/webhook")
async def delete_webhook(caller: Caller, server_id: PathId) -> Done:
    """Delete the server's webhook and all deliveries that wait for it."""
    async with transaction() as db:
        await webhooks.remove(db, gateways(), caller, server_id)
    return Done()
