"""The check of what is posted to a webhook: who signed it, when, and whether it came before."""

import hashlib
import hmac
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Protocol, cast

from holdfast_client.shapes import WebhookEvent

TOLERANCE = 300.0
"""Seconds by which a signature may be older, or newer, than this machine's clock."""
LARGEST = 1_000_000
"""Bytes of a body; a real one has at most a few thousand."""
_LONGEST_HEADER, _MOST_SIGNATURES = 1_000, 8


class WebhookRefused(Exception):
    """The request is not to be trusted: answer 400, and do nothing else with it."""


class WebhookRepeated(Exception):
    """The same event came before: answer 204, so that it is not sent again, and do nothing else with it."""


class Seen(Protocol):
    """Remembers which deliveries came. Several processes that serve one webhook share one, in their database."""

    def first(self, delivery: str) -> bool:
        """Remember a delivery by its id, and return whether it was not remembered before, in one step."""
        ...


class SeenDeliveries:
    """Remembers in memory the deliveries of two days, longer than any is repeated, and at most `most` of them."""

    def __init__(
        self, most: int = 100_000, seconds: float = 172_800, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most, self._seconds, self._clock = most, seconds, clock
        self._came: OrderedDict[str, float] = OrderedDict()
        self._lock = threading.Lock()

    def first(self, delivery: str) -> bool:
        """Remember a delivery by its id, and return whether it was not remembered before."""
        with self._lock:
            moment = self._clock()
            while self._came and next(iter(self._came.values())) <= moment - self._seconds:
                self._came.popitem(last=False)
            if delivery in self._came:
                return False
            self._came[delivery] = moment
            if len(self._came) > self._most:
                self._came.popitem(last=False)
            return True

    def forget(self, delivery: str) -> None:
        """Forget a delivery whose handling failed, so that its repetition is accepted."""
        with self._lock:
            self._came.pop(delivery, None)


def verify_webhook(
    body: bytes,
    signature: str | None,
    *secrets: str,
    seen: Seen,
    tolerance: float = TOLERANCE,
    clock: Callable[[], float] = time.time,
) -> WebhookEvent:
    """Return the event that was posted. `body` are the bytes as they came, `signature` is `Holdfast-Signature`.

    Raises WebhookRefused unless one of the secrets signed these very bytes within `tolerance` seconds of now, and
    WebhookRepeated for an event that came before. Name the former secret too while you change to a new one.
    """
    if not secrets or not all(secrets):
        raise ValueError("A secret is needed.")
    if len(body) > LARGEST:
        raise WebhookRefused("The body is too large.")
    moment, signatures = _parts(signature or "")
    message = moment.encode() + b"." + body
    signed = False
    for secret in secrets:
        wanted = hmac.new(secret.encode(), message, hashlib.sha256).hexdigest().encode()
        for one in signatures:
            signed |= hmac.compare_digest(wanted, one.encode(errors="replace"))
    if not signed:
        raise WebhookRefused("No secret of ours signed this.")
    if abs(clock() - int(moment)) > tolerance:
        raise WebhookRefused("The signature is too old, or from the future.")
    event = _event(body)
    if not seen.first(event["id"]):
        raise WebhookRepeated("This event came before.")
    return event


def _parts(header: str) -> tuple[str, list[str]]:
    """Return the moment, as it was signed, and the signatures of the header."""
    if len(header) > _LONGEST_HEADER:
        raise WebhookRefused("The signature cannot be read.")
    pairs = [part.strip().partition("=") for part in header.split(",")]
    moments = [value for name, _, value in pairs if name == "t"]
    signatures = [value for name, _, value in pairs if name == "v1"]
    if len(moments) != 1 or not 0 < len(signatures) <= _MOST_SIGNATURES:
        raise WebhookRefused("The signature cannot be read.")
    if not (moments[0].isascii() and moments[0].isdigit() and len(moments[0]) < 13):
        raise WebhookRefused("The signature cannot be read.")
    return moments[0], signatures


def _event(body: bytes) -> WebhookEvent:
    try:
        found: Any = json.loads(body)
    except ValueError:
        raise WebhookRefused("The body is not JSON.") from None
    if not isinstance(found, dict) or not isinstance(cast("dict[str, Any]", found).get("id"), str):
        raise WebhookRefused("The body has no id.")
    return cast("WebhookEvent", found)
