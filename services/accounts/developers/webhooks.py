"""The webhook of a server: where its events are posted, which ones, and the secret that signs them."""

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

from sqlmodel import col, delete, func, select, update

from gateways import Gateways
from gateways.transport.public_addresses import is_discord, is_public
from locales import N_, _
from locales.stored_texts import said
from models import Server, Webhook, WebhookDelivery, now
from models.db.session import AsyncSession
from services.accounts import encryption
from services.accounts.encryption import UnreadableToken
from services.core import audit
from services.core.actors import Actor
from services.core.errors import FieldRefused, WebhookNotFound
from services.core.json_view import json_view
from services.guilds import permissions
from settings import settings

EVENTS: Final = ("role.given", "role.taken", "wallet.proved", "rule.changed", "breaker.tripped")
TEST: Final = "test"
SHOWN = 20
"""How many deliveries an admin sees, the newest ones."""
OVERLAP = timedelta(days=1)
"""How long after a new secret was made deliveries are signed with the former one as well."""
MOST_FORMER = 4
"""The most former secrets that sign: a receiver has one of them while somebody makes one new secret after another."""
LONGEST_URL = 1_000
_PREFIX = "whsec_"
_HOST = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")
_NOT_HTTPS = N_("The address has to begin with https:// and use the usual port.")
_NOT_PUBLIC = N_("The address has to be one that the whole internet can reach.")
_NOT_DISCORD = N_("Discord does not accept these events. Use the address of a program of your own.")
MOST_COUNTED = 10_000
"""Waiting deliveries are counted up to this number."""


@json_view
class DeliveryView:
    """One event for the webhook; `id` is the one in its body.

    `state` is `waiting`, `delivered`, `failed` after a day of attempts, or `dropped` if it may no longer be sent: the
    member withdrew their consent, or was forgotten. `fault` is the last attempt's.
    """

    id: str
    event: str
    state: str
    attempts: int
    fault: str | None
    created_at: datetime
    next_at: datetime | None
    done_at: datetime | None


@json_view
class WebhookView:
    """A server's webhook without its secret, with its newest deliveries.

    `failingSince` is set while no delivery succeeds. `gaveUpAt` is when a delivery was last given up; it is unset by
    the next one that succeeds. `waiting` counts up to 10,000. Until `formerSecretUntil` deliveries are signed with the
    former secret as well.
    """

    url: str
    events: tuple[str, ...]
    created_at: datetime
    former_secret_until: datetime | None
    failing_since: datetime | None
    gave_up_at: datetime | None
    waiting: int
    deliveries: tuple[DeliveryView, ...]


@dataclass(frozen=True, slots=True)
class WebhookChange:
    """A webhook after a change, and its secret if the change made a new one."""

    view: WebhookView
    secret: str | None


async def view(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> WebhookView:
    """Return the server's webhook. Raises ServerNotFound unless the actor runs it, WebhookNotFound."""
    if (found := await find(db, outside, actor, server_id)) is None:
        raise WebhookNotFound
    return found


async def find(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> WebhookView | None:
    """Return the server's webhook, or None. Raises ServerNotFound unless the actor runs it."""
    await permissions.require_admin_to_read(db, outside, actor, server_id)
    row = await db.get(Webhook, server_id, populate_existing=True)
    return None if row is None else await _view(db, row)


async def _view(db: AsyncSession, row: Webhook) -> WebhookView:
    server_id = row.server_id
    theirs = WebhookDelivery.server_id == server_id
    some = select(WebhookDelivery.id).where(theirs, WebhookDelivery.state == "waiting").limit(MOST_COUNTED).subquery()
    waiting = (await db.exec(select(func.count()).select_from(some))).one()
    newest = select(WebhookDelivery).where(theirs).order_by(col(WebhookDelivery.id).desc()).limit(SHOWN)
    return WebhookView(
        row.url, tuple(row.events), row.created_at,
        row.old_until if row.old_until is not None and row.old_until > now() else None,
        row.failing_since, row.gave_up_at, waiting, tuple(map(_delivery, (await db.exec(newest)).all())),
    )  # fmt: skip


def _delivery(row: WebhookDelivery) -> DeliveryView:
    due = row.next_at if row.state == "waiting" else None
    fault = said(row.fault) if row.fault else None
    return DeliveryView(str(row.uuid), row.event, row.state, row.attempts, fault, row.created_at, due, row.done_at)


async def put(
    db: AsyncSession,
    outside: Gateways,
    actor: Actor,
    server_id: int,
    url: str,
    events: Sequence[str],
    *,
    new_secret: bool = False,
) -> WebhookChange:
    """Set the server's webhook. The first time, and with `new_secret`, return a secret that cannot be read again.

    Raises ServerNotFound, ProviderUnavailable, FieldRefused.
    """
    url, events = _url(url), _events(events)
    await permissions.require_admin(db, outside, actor, server_id)
    row = await _locked(db, server_id)
    secret = _PREFIX + secrets.token_urlsafe(32) if row is None or new_secret else None
    if row is None:
        row = Webhook(server_id=server_id, url=url, events=list(events), secret=encryption.seal(secret or ""))
    elif secret is not None:
        row.old_secret, row.old_until = _former_secrets(row), now() + OVERLAP
        row.secret = encryption.seal(secret)
    if row.url != url:
        # A new address starts without the failures of the former one.
        row.failures, row.slow, row.failing_since, row.gave_up_at, row.next_at = 0, True, None, None, now()
    row.url, row.events = url, list(events)
    db.add(row)
    await db.flush()
    data = {"host": urlsplit(url).hostname, "events": list(events), "newSecret": secret is not None}
    await audit.record(db, audit.line("webhook.set", server_id=server_id, actor=actor.discord_id, data=data))
    return WebhookChange(await _view(db, row), secret)


async def _locked(db: AsyncSession, server_id: int) -> Webhook | None:
    """Return the server's webhook, which nobody else sets or deletes until the transaction ends."""
    await db.exec(select(Server.id).where(Server.id == server_id).with_for_update(key_share=True))
    return await db.get(Webhook, server_id, populate_existing=True)


def _former_secrets(row: Webhook) -> bytes:
    """Return, sealed, the secrets that sign beside a new one: the present one, then former ones with their end.

    The end of the present one is in the row.
    """
    if row.old_secret is None or row.old_until is None or row.old_until <= now():
        return row.secret
    try:
        newest, *others = in_force(encryption.unseal(row.old_secret), row.old_until)
        kept = [f"{secret}:{end.timestamp():.0f}" for secret, end in (newest, *others)]
        return encryption.seal(" ".join([encryption.unseal(row.secret), *kept][:MOST_FORMER]))
    except UnreadableToken:
        return row.secret


def in_force(former: str, until: datetime) -> list[tuple[str, datetime]]:
    """Return the former secrets that still sign, the newest first, each with its end; `until` is the newest one's.

    No other signs for longer than the newest: its end may be from a time at which the database's clock was ahead.
    """
    newest, *others = former.split()
    ends = (
        (secret, min(datetime.fromtimestamp(int(end), UTC), until))
        for secret, _, end in (one.partition(":") for one in others)
    )
    return [(secret, end) for secret, end in ((newest, until), *ends) if end > now()]


def _url(given: str) -> str:
    url = given.strip()
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise FieldRefused("url", _(_NOT_HTTPS)) from None
    readable = url.isascii() and url.isprintable() and " " not in url
    if len(url) > LONGEST_URL or not readable or (host and not _HOST.fullmatch(host)):
        raise FieldRefused("url", _("The address cannot be read."))
    if settings().sandbox and parts.scheme in {"http", "https"} and host in {"localhost", "127.0.0.1"}:
        return url
    if parts.scheme != "https" or not host or port not in {None, 443} or parts.username is not None:
        raise FieldRefused("url", _(_NOT_HTTPS))
    literal = host.replace(".", "").isdigit() or ":" in host
    if (literal and not is_public(host)) or "." not in host.strip(".") or host.endswith((".local", ".internal")):
        raise FieldRefused("url", _(_NOT_PUBLIC))
    if is_discord(host):
        raise FieldRefused("url", _(_NOT_DISCORD))
    return url


def _events(given: Sequence[str]) -> tuple[str, ...]:
    if not given or set(given) - set(EVENTS):
        raise FieldRefused("events", _("Choose at least one of: {events}.").format(events=", ".join(EVENTS)))
    return tuple(event for event in EVENTS if event in given)


async def remove(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> None:
    """Delete the server's webhook with all its deliveries.

    Raises ServerNotFound, ProviderUnavailable, WebhookNotFound.
    """
    await permissions.require_admin(db, outside, actor, server_id)
    row = await _locked(db, server_id)
    if row is None:
        raise WebhookNotFound
    await db.exec(delete(WebhookDelivery).where(col(WebhookDelivery.server_id) == server_id))
    await db.delete(row)
    await audit.record(db, audit.line("webhook.deleted", server_id=server_id, actor=actor.discord_id))


async def send_test(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> None:
    """Queue a test event, or make a waiting one due now, and end the webhook's pause.

    Raises ServerNotFound, ProviderUnavailable, WebhookNotFound.
    """
    await permissions.require_admin(db, outside, actor, server_id)
    row = await _locked(db, server_id)
    if row is None:
        raise WebhookNotFound
    row.next_at = now()
    db.add(row)
    retried = await db.execute(
        update(WebhookDelivery)
        .where(
            col(WebhookDelivery.server_id) == server_id, col(WebhookDelivery.event) == TEST,
            col(WebhookDelivery.state) == "waiting",
        )
        .values(next_at=now()).returning(col(WebhookDelivery.id))
    )  # fmt: skip
    if retried.first() is None:
        db.add(WebhookDelivery(server_id=server_id, event=TEST))
