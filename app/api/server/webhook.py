"""The webhook of a server, to which its events are posted."""

from fastapi import Response
from pydantic import Field, StrictBool

from app.api.requests.caller import Caller
from app.api.requests.routers import calls
from app.api.requests.shapes import AcceptedAnswer, ApiAnswer, Done, Loose, PathId, Payload
from gateways import gateways
from locales import _
from models import transaction
from services.accounts.developers import webhooks
from services.accounts.developers.webhooks import EVENTS, WebhookView

router = calls("/servers/{server_id}/webhook", tags=["programs"])


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


@router.get("")
async def get_webhook(caller: Caller, server_id: PathId) -> WebhookView:
    """Return the server's webhook without its secret, and its newest deliveries."""
    async with transaction() as db:
        return await webhooks.view(db, gateways(), caller, server_id)


@router.put("")
async def set_webhook(caller: Caller, server_id: PathId, payload: WebhookPayload, answer: Response) -> WebhookAnswer:
    """Set the address to which the server's events are posted, signed; the first call returns the secret."""
    async with transaction() as db:
        now = await webhooks.put(
            db, gateways(), caller, server_id, payload.url, payload.events, new_secret=payload.new_secret
        )
    answer.headers["Cache-Control"] = "no-store"
    return WebhookAnswer(webhook=now.view, secret=now.secret, url=now.view.url, events=now.view.events)


@router.post("/test", status_code=202)
async def send_test_event(caller: Caller, server_id: PathId) -> AcceptedAnswer:
    """Queue a test event for the webhook."""
    async with transaction() as db:
        await webhooks.send_test(db, gateways(), caller, server_id)
    return AcceptedAnswer(message=_("The test event is sent within seconds."))


@router.delete("")
async def delete_webhook(caller: Caller, server_id: PathId) -> Done:
    """Delete the server's webhook and all deliveries that wait for it."""
    async with transaction() as db:
        await webhooks.remove(db, gateways(), caller, server_id)
    return Done()
