"""What can go wrong when we ask somebody else's service, named for what the caller should do about it."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_LINKS = re.compile(r"\S*(?:https?|wss?)://\S+")


class ProviderError(Exception):
    """A provider gave no usable answer; whatever was asked is unknown, never "no".

    `provider` is a name for people ("Discord", "Base (node 1)"). `retry_after` is the seconds the provider asked us to
    wait, where it said so. The text never carries a URL: keys of nodes live in URLs.
    """

    def __init__(self, provider: str, reason: str, *, retry_after: float | None = None) -> None:
        super().__init__(f"{provider}: {without_links(reason)}")
        self.provider = provider
        self.retry_after = retry_after


class ProviderDown(ProviderError):
    """It could not be reached, took too long, or answered that it is broken (5xx)."""


class ProviderBusy(ProviderError):
    """It asked us to slow down (429 and relatives), or our own limiter would have to wait past the deadline."""


class NotYet(ProviderBusy):
    """Our own limiter kept the request back, so nothing was sent; `retry_after` says when it may go."""


class ProviderConfused(ProviderError):
    """It answered something that is not the documented shape, or that contradicts what must be true."""


class ProviderRefused(ProviderError):
    """It understood and refused (4xx); asking again changes nothing until somebody acts."""

    def __init__(self, provider: str, reason: str, *, status: int, code: int | None = None) -> None:
        super().__init__(provider, reason)
        self.status = status
        self.code = code


class Unauthorized(ProviderRefused):
    """The credential is not accepted (any more)."""


class NotThere(ProviderError):
    """The provider says that the thing asked about does not exist; `code` is the provider's own number for it."""

    def __init__(self, provider: str, reason: str, *, status: int = 404, code: int | None = None) -> None:
        super().__init__(provider, reason)
        self.status = status
        self.code = code


def without_links(text: str) -> str:
    """The text with every URL cut out and at most 200 characters long."""
    # A contract chooses its error's text, and the pattern takes quadratic time: 60 kB would stop everything for long.
    return _LINKS.sub("[address]", text[:1_000])[:200]


def seconds_to_wait(header: str | None, *, now: datetime | None = None) -> float | None:
    """A Retry-After header as seconds: a number or an HTTP date (RFC 9110 §10.2.3), else None."""
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            moment = parsedate_to_datetime(header)
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = (moment - (now or datetime.now(UTC))).total_seconds()
    return max(0.0, seconds) if seconds == seconds and seconds != float("inf") else None
