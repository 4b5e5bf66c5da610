"""The errors of requests to external services, grouped by what to do about them; they name no links or accounts."""

import math
import re
from datetime import UTC, datetime

from gateways.transport.corrected_clock import http_date
from gateways.transport.plain_text import plain

_LINKS = re.compile(r"\S*(?:https?|wss?)://\S+")
ACCOUNTS = re.compile(r"0[xX][0-9a-fA-F]{40,}|[1-9A-HJ-NP-Za-km-z]{32,}")
"""Addresses on EVM chains and on Solana, and Solana's longer signatures, also right after the `\\n` of repr()."""
LONGEST_PAUSE = 3_600.0
"""The most seconds for which an answer makes us wait, whatever it says; if it means more, we are refused every hour."""
SHORTEST_KEY = 12
"""Characters from which a part of a URL may be a provider's key."""


class ProviderError(Exception):
    """A provider gave no usable answer. The result is unknown, never "no".

    `provider` is a name for people ("Discord", "Base (node 1)"); `reason` follows it in the text. `retry_after` is the
    number of seconds that the provider asked us to wait, if it did. The text never contains a URL, because URLs of
    nodes contain keys, and no account's address, because a node may quote the wallet that it was asked about.
    `host` is the provider where a token's own link leads to it; its contract may choose another one for each token.
    """

    host: str = ""

    def __init__(self, provider: str, reason: str, *, retry_after: float | None = None) -> None:
        self.reason = without_links(reason)
        super().__init__(f"{provider}: {self.reason}")
        self.provider = provider
        self.retry_after = retry_after


class ProviderDown(ProviderError):
    """The provider could not be reached, took too long, or answered with a server error (5xx)."""


class ProviderBusy(ProviderError):
    """The provider asked us to slow down (429 and similar), or our own limiter would have to wait past the deadline."""


class NotYet(ProviderBusy):
    """Our own limiter held the request back, so nothing was sent; `retry_after` says when it may be sent."""


class ProviderConfused(ProviderError):
    """The answer does not have the documented shape, or contradicts what must be true."""


class ProviderRefused(ProviderError):
    """The provider understood the request and refused it (4xx); a retry is useless until a person acts."""

    def __init__(self, provider: str, reason: str, *, status: int, code: int | None = None) -> None:
        super().__init__(provider, reason)
        self.status = status
        self.code = code


class Unauthorized(ProviderRefused):
    """The provider does not accept the credential, or no longer does."""


class NotThere(ProviderError):
    """The provider says that the requested thing does not exist; `code` is the provider's own error code."""

    def __init__(self, provider: str, reason: str, *, status: int = 404, code: int | None = None) -> None:
        super().__init__(provider, reason)
        self.status = status
        self.code = code


def without_links(text: str) -> str:
    """Return the text on one line without URLs, accounts and invisible characters, in at most 200 characters."""
    # A contract chooses its error's text. The pattern takes quadratic time, so 60 kB would block the process for long;
    # and the database stores no text with a NUL.
    return ACCOUNTS.sub("[account]", _LINKS.sub("[address]", plain(text[:1_000], 1_000)))[:200]


def without_key(text: str, url: str) -> str:
    """Return the text without the parts of a provider's URL that are long enough to be a key."""
    for part in re.split(r"[/?&=#:@]", url):
        if len(part) >= SHORTEST_KEY:
            text = text.replace(part, "[key]")
    return text


def no_answer(fault: Exception) -> str:
    """Return in words why no answer came. Members and admins read it, so the name of a library's class is left out."""
    name = type(fault).__name__
    if "Timeout" in name:
        return "no answer in time"
    if "Decoding" in name:
        return "its answer could not be decoded"
    if name.startswith(("Connect", "Proxy", "ClientConnector", "ClientProxy")):
        return "no connection"
    return "the connection was lost"


def seconds_to_wait(header: str | None) -> float | None:
    """Return a Retry-After header, a number or an HTTP date (RFC 9110 §10.2.3), in seconds; None for anything else.

    At most LONGEST_PAUSE: some proxies write the time of day in place of seconds, and people read when to try again.
    """
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        moment = http_date(header)
        if moment is None:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = (moment - datetime.now(UTC)).total_seconds()
    return min(max(0.0, seconds), LONGEST_PAUSE) if math.isfinite(seconds) else None
