"""What can go wrong in a use case, each with its HTTP status and the sentence that a person reads."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from psycopg.errors import QueryCanceled
from sqlalchemy.exc import OperationalError

from gateways.transport.errors import ProviderError
from services.core.ages import in_seconds


@dataclass(frozen=True, slots=True)
class CollectionView:
    """A collection on one chain; `slug` is OpenSea's, None while that is not known."""

    name: str
    contract_address: str
    blockchain: str
    slug: str | None = None


class HoldfastError(Exception):
    """Something a person is told: `status` is the HTTP answer's, `message` a whole sentence without secrets.

    `more` is what a program may use beside it, in the answer's own names.
    """

    status: ClassVar[int] = 500

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message: str = message
        self.more: Mapping[str, object] = {}


class NotSignedIn(HoldfastError):
    """Nobody is signed in, or the session has ended."""

    status: ClassVar[int] = 401

    def __init__(self, message: str = "Unauthorized") -> None:
        super().__init__(message)


class Forbidden(HoldfastError):
    """The thing is the caller's to know of, but this they may not do."""

    status: ClassVar[int] = 403


class NotConnected(Forbidden):
    """Discord no longer accepts what the person granted us, so they have to connect again."""

    def __init__(self, message: str = "Connect Discord first") -> None:
        super().__init__(message)


class NotFound(HoldfastError):
    """Not there, or not the caller's to know of; the two are told apart by nobody."""

    status: ClassVar[int] = 404


class ServerNotFound(NotFound):
    """No such server among those that the caller runs."""

    def __init__(self, message: str = "Server not found") -> None:
        super().__init__(message)


class RuleNotFound(NotFound):
    """No such rule in a server that the caller runs."""

    def __init__(self, message: str = "Verification rule not found") -> None:
        super().__init__(message)


class WalletNotFound(NotFound):
    """No such wallet among the caller's own."""

    def __init__(self, message: str = "Wallet not found") -> None:
        super().__init__(message)


class SessionNotFound(NotFound):
    """No such session among the caller's own."""

    def __init__(self, message: str = "Session not found") -> None:
        super().__init__(message)


class MemberNotFound(NotFound):
    """No such member in a server that the caller runs."""

    def __init__(self, message: str = "Member not found") -> None:
        super().__init__(message)


class BatchNotFound(NotFound):
    """No such batch in the log of a server that the caller runs."""

    def __init__(self, message: str = "Nothing in the log has this number") -> None:
        super().__init__(message)


class CollectionNotFound(NotFound):
    """No such collection, or none that rules can ask about."""

    def __init__(self, message: str = "Collection not found") -> None:
        super().__init__(message)


class CollectionElsewhere(CollectionNotFound):
    """Not there, but elsewhere; `offers` are the collections that may be meant."""

    def __init__(self, message: str, offers: Sequence[CollectionView]) -> None:
        super().__init__(message)
        self.offers: tuple[CollectionView, ...] = tuple(offers)
        self.more = _offered(offers)


class FieldRefused(HoldfastError):
    """A field's value cannot be taken; `field` is its camelCase name in the payload.

    `offers` are collections that may be meant instead, where it names several or one that cannot be used.
    """

    status: ClassVar[int] = 400

    def __init__(self, field: str, message: str, offers: Sequence[CollectionView] = ()) -> None:
        super().__init__(message)
        self.field: str = field
        self.offers: tuple[CollectionView, ...] = tuple(offers)
        if offers:
            self.more = _offered(offers)


class Conflict(HoldfastError):
    """What is asked contradicts what is already there."""

    status: ClassVar[int] = 409


class Retryable(HoldfastError):
    """The same call may succeed later: `retry_after` seconds from now, at least 1."""

    def __init__(self, message: str, retry_after: float = 5) -> None:
        super().__init__(message)
        self.retry_after: float = max(1.0, retry_after)


class QuestionTimedOut(Retryable):
    """The database worked on one statement for longer than a screen may ask it to."""

    status: ClassVar[int] = 503

    def __init__(self, message: str = "This took too long, so we stopped it. Please try again later.") -> None:
        super().__init__(message, retry_after=60)


def explained(fault: Exception) -> Exception:
    """Return the error that a person is told of a fault: TookTooLong where the database ended a long statement."""
    ended = isinstance(fault, OperationalError) and isinstance(fault.orig, QueryCanceled)
    return QuestionTimedOut() if ended else fault


class TooMany(Retryable):
    """The caller asked too often."""

    status: ClassVar[int] = 429


class ProviderUnavailable(Retryable):
    """Somebody else's service is at fault; the message says whose."""

    status: ClassVar[int] = 503


def unavailable(error: ProviderError) -> ProviderUnavailable:
    """What a person is told when a provider gave no usable answer: whose fault it is, and when to try again."""
    seconds = math.ceil(max(1.0, error.retry_after if error.retry_after is not None else 5.0))
    return ProviderUnavailable(
        f"{error.provider} does not answer as it should right now. Please try again {in_seconds(seconds)}.", seconds
    )


class SignInFailed(HoldfastError):
    """A return from Discord that signs nobody in; the browser is sent to /oauth-error with the code `auth_failed`."""

    status: ClassVar[int] = 400

    def __init__(self, message: str = "Discord authentication failed.") -> None:
        super().__init__(message)


def _offered(offers: Sequence[CollectionView]) -> Mapping[str, object]:
    return {
        "offers": [
            {"name": one.name, "contractAddress": one.contract_address, "blockchain": one.blockchain} for one in offers
        ]
    }
