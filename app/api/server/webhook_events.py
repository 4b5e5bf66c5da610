"""The bodies that are posted to a server's webhook, for the OpenAPI document and for developers of receivers."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Header

from app.api.requests.examples import ACCEPTED, NOT_SIGNED, POSTED_AGAIN, SIGNATURE
from app.api.requests.routers import unique_id
from app.api.requests.shapes import ApiAnswer


class RoleEventData(ApiAnswer):
    """The member, the role, and the rules because of which it was given or taken; never a wallet."""

    discord_id: str | None
    role_id: str | None
    rule_ids: list[int]


class WalletEventData(ApiAnswer):
    """The member and the wallet, with its address shortened. Sent only while its owner shares it with the admins."""

    discord_id: str | None
    wallet: str
    family: str
    method: str | None


class RuleEventData(ApiAnswer):
    """A rule, and what happened to it: `created`, `changed`, `paused`, `resumed` or `deleted`.

    The product itself pauses and resumes rules; an admin's pause is a change. An undo is posted as what it does: a
    deleted rule is `created` again, with its former id. `ruleId` is null if an undo put back several rules at once;
    `ruleIds` then has all that it was about, also those that were changed since and stay as they are.
    """

    rule_id: int | None
    rule_name: str | None
    rule_ids: list[int]
    change: str


class BreakerEventData(ApiAnswer):
    """The role whose removals wait for an admin, and how many of its holders would have lost it."""

    role_id: str | None
    would_lose: int | None
    holders: int | None


class NoEventData(ApiAnswer):
    """Nothing: a test event has no subject."""


class PostedEvent(ApiAnswer):
    """The fields of every event; `id` is the same in each repetition of a delivery, `guildId` is Discord's id."""

    id: str
    created_at: datetime
    server_id: int
    guild_id: str


class RoleGivenEvent(PostedEvent):
    """We gave a member a role."""

    event: Literal["role.given"]
    data: RoleEventData


class RoleTakenEvent(PostedEvent):
    """We took a role from a member."""

    event: Literal["role.taken"]
    data: RoleEventData


class WalletProvedEvent(PostedEvent):
    """A member who shares their wallets with the server's admins proved one."""

    event: Literal["wallet.proved"]
    data: WalletEventData


class RuleChangedEvent(PostedEvent):
    """A rule was created, changed, paused, resumed or deleted."""

    event: Literal["rule.changed"]
    data: RuleEventData


class BreakerTrippedEvent(PostedEvent):
    """Removals of a role are held back until an admin decides."""

    event: Literal["breaker.tripped"]
    data: BreakerEventData


class SentTestEvent(PostedEvent):
    """An admin sent a test event."""

    event: Literal["test"]
    data: NoEventData


Signature = Annotated[str, Header(alias="Holdfast-Signature", description=SIGNATURE)]
Kind = Annotated[str, Header(alias="Holdfast-Event", description=NOT_SIGNED.format(field="event"))]
Delivery = Annotated[str, Header(alias="Holdfast-Delivery", description=NOT_SIGNED.format(field="id"))]

router = APIRouter(generate_unique_id_function=unique_id, responses={"default": {"description": POSTED_AGAIN}})


def _posted(event: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return router.post(event, status_code=204, response_description=ACCEPTED)


@_posted("role.given")
def role_given(signature: Signature, kind: Kind, delivery: Delivery, body: RoleGivenEvent) -> None:
    """Post that we gave a member a role."""


@_posted("role.taken")
def role_taken(signature: Signature, kind: Kind, delivery: Delivery, body: RoleTakenEvent) -> None:
    """Post that we took a role from a member."""


@_posted("wallet.proved")
def wallet_proved(signature: Signature, kind: Kind, delivery: Delivery, body: WalletProvedEvent) -> None:
    """Post that a member who shares their wallets proved one."""


@_posted("rule.changed")
def rule_changed(signature: Signature, kind: Kind, delivery: Delivery, body: RuleChangedEvent) -> None:
    """Post that a rule changed."""


@_posted("breaker.tripped")
def breaker_tripped(signature: Signature, kind: Kind, delivery: Delivery, body: BreakerTrippedEvent) -> None:
    """Post that removals are held back."""


@_posted("test")
def sent_test(signature: Signature, kind: Kind, delivery: Delivery, body: SentTestEvent) -> None:
    """Post a test event."""
