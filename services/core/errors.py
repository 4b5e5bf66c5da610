"""The errors of use cases, each with its HTTP status and the sentence shown to people."""

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

from psycopg.errors import QueryCanceled
from sqlalchemy.exc import OperationalError

from gateways.transport.errors import ProviderError
from locales import N_, _
from services.core.json_view import Internal, json_view
from services.core.relative_times import in_seconds


@json_view
class CollectionView:
    """A collection on one chain."""

    name: str
    contract_address: str
    blockchain: str
    slug: Internal[str | None] = None
    """OpenSea's name of it, or None while unknown."""


class HoldfastError(Exception):
    """An error that people may read: `status` is the HTTP status, `message` a full sentence without secrets.

    `more` holds extra fields for programs, named as in the response.
    """

    status: ClassVar[int] = 500

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message: str = message
        self.more: Mapping[str, object] = {}


class NotSignedIn(HoldfastError):
    """Nobody is signed in, or the session has ended."""

    status: ClassVar[int] = 401

    def __init__(self) -> None:
        super().__init__("Unauthorized")


class Forbidden(HoldfastError):
    """The caller may see the object, but may not perform this action on it."""

    status: ClassVar[int] = 403


class NotConnected(Forbidden):
    """Discord no longer accepts the person's grant, so they have to connect again."""

    def __init__(self) -> None:
        super().__init__(_("Connect Discord first"))


class NotFound(HoldfastError):
    """Not found, or hidden from the caller. The caller cannot distinguish the two. Without a message: `sentence`."""

    status: ClassVar[int] = 404
    sentence: ClassVar[str] = "Not found"

    def __init__(self, message: str | None = None) -> None:
        super().__init__(_(self.sentence) if message is None else message)


class ServerNotFound(NotFound):
    """The caller runs no such server."""

    sentence: ClassVar[str] = N_("Server not found")


class MoveNotFound(NotFound):
    """The server has no move, or none that can still be ended."""

    sentence: ClassVar[str] = N_("This server has no move.")


class MigrationNotFound(NotFound):
    """The server has no such migration in which both contracts count."""

    sentence: ClassVar[str] = N_("There is no such migration, or it has ended.")


class RuleNotFound(NotFound):
    """No such rule in the servers that the caller runs."""

    sentence: ClassVar[str] = N_("Verification rule not found")


class RoleNotFound(NotFound):
    """No rule of the server gives such a role."""

    sentence: ClassVar[str] = N_("No rule of this server gives that role.")


class ReachNotFound(NotFound):
    """No such count in the servers that the caller runs."""

    sentence: ClassVar[str] = N_("Count not found")


class WalletNotFound(NotFound):
    """The caller has no such wallet."""

    sentence: ClassVar[str] = N_("Wallet not found")


class SessionNotFound(NotFound):
    """The caller has no such session."""

    sentence: ClassVar[str] = N_("Session not found")


class MemberNotFound(NotFound):
    """No such member in the servers that the caller runs."""

    sentence: ClassVar[str] = N_("Member not found")


class BatchNotFound(NotFound):
    """No such batch in the logs of the servers that the caller runs."""

    sentence: ClassVar[str] = N_("Nothing in the log has this number")


class ListNotFound(NotFound):
    """No such list of addresses in the servers that the caller runs."""

    sentence: ClassVar[str] = N_("List not found")


class ApiTokenNotFound(NotFound):
    """No such API token in the servers that the caller runs."""

    sentence: ClassVar[str] = N_("Token not found")


class WebhookNotFound(NotFound):
    """The server has no webhook."""

    sentence: ClassVar[str] = N_("This server has no webhook.")


class CollectionNotFound(NotFound):
    """No such collection, or none that a rule can use."""

    sentence: ClassVar[str] = N_("Collection not found")


class CollectionElsewhere(CollectionNotFound):
    """The collection is on another chain; `offers` are the collections that may be meant."""

    def __init__(self, message: str, offers: Sequence[CollectionView]) -> None:
        super().__init__(message)
        self.offers: tuple[CollectionView, ...] = tuple(offers)
        self.more = _offered(offers)


class FieldRefused(HoldfastError):
    """The value of a field is invalid; `field` is its camelCase name in the payload.

    `offers` are the collections that may be meant instead of an ambiguous or unusable one.
    """

    status: ClassVar[int] = 400

    def __init__(self, field: str, message: str, offers: Sequence[CollectionView] = ()) -> None:
        super().__init__(message)
        self.field: str = field
        self.offers: tuple[CollectionView, ...] = tuple(offers)
        if offers:
            self.more = _offered(offers)


class Conflict(HoldfastError):
    """The request contradicts the present state."""

    status: ClassVar[int] = 409


class Outdated(Conflict):
    """What the request would replace is not what its sender saw: somebody has changed it since."""


class KeyReused(HoldfastError):
    """The Idempotency-Key of a request belongs to another one."""

    status: ClassVar[int] = 422

    def __init__(self) -> None:
        super().__init__(_("This Idempotency-Key was sent with another rule. Send a new key with a new rule."))


class Retryable(HoldfastError):
    """The same call may succeed later: after `retry_after` seconds, at least 1."""

    def __init__(self, message: str, retry_after: float = 5) -> None:
        super().__init__(message)
        self.retry_after: float = max(1.0, retry_after)


class QuestionTimedOut(Retryable):
    """A statement exceeded the time that a screen allows it."""

    status: ClassVar[int] = 503

    def __init__(self) -> None:
        super().__init__(_("This took too long, so we stopped it. Please try again later."), retry_after=60)


def explained(fault: Exception) -> Exception:
    """Return QuestionTimedOut if the database cancelled a long statement, otherwise the exception itself."""
    ended = isinstance(fault, OperationalError) and isinstance(fault.orig, QueryCanceled)
    return QuestionTimedOut() if ended else fault


class TooMany(Retryable):
    """The caller sends requests too often."""

    status: ClassVar[int] = 429


class ProviderUnavailable(Retryable):
    """A provider failed; the message names it."""

    status: ClassVar[int] = 503


def unavailable(error: ProviderError) -> ProviderUnavailable:
    """Return the error to show when a provider gave no usable answer; it names the provider and when to retry."""
    seconds = math.ceil(max(1.0, error.retry_after if error.retry_after is not None else 5.0))
    return ProviderUnavailable(
        _("{provider} does not answer as it should right now. Please try again {time}.").format(
            provider=error.provider, time=in_seconds(seconds)
        ),
        seconds,
    )


class SignInFailed(HoldfastError):
    """A failed return from Discord's sign-in; the browser is sent to /oauth-error with the code `auth_failed`."""

    status: ClassVar[int] = 400

    def __init__(self) -> None:
        super().__init__(_("Discord authentication failed."))


def _offered(offers: Sequence[CollectionView]) -> Mapping[str, object]:
    return {
        "offers": [
            {"name": one.name, "contractAddress": one.contract_address, "blockchain": one.blockchain} for one in offers
        ]
    }
