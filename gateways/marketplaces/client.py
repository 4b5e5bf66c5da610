"""The HTTP client for marketplaces: JSON within their rate limits, with a named error for each kind of failure."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import cast

import httpx
import orjson

from gateways.marketplaces.quota import LONGEST_PAUSE, Quota, Use
from gateways.marketplaces.types import AccountItem
from gateways.transport import corrected_clock, provider_reports
from gateways.transport.connections import GatedClient, agent, read_at_most, timeouts, tls
from gateways.transport.errors import (
    NotThere,
    ProviderBusy,
    ProviderConfused,
    ProviderDown,
    ProviderError,
    ProviderRefused,
    Unauthorized,
    no_answer,
    seconds_to_wait,
)
from gateways.transport.fair_turns import FairGate

DEADLINE = 10.0
"""Seconds for one request, from when its turn comes."""
PAGES_DEADLINE = 60.0
"""Seconds for all pages of one account."""
LARGEST_ANSWER = 1_000_000
CONNECTIONS, MOST_FOR_ONE = 32, 8
"""Requests to one marketplace at a time, and how many of them for one tenant."""
_USED_UP = re.compile(
    r"(daily|monthly)\b.{0,40}\b(capacity|limit|allowance|quota|requests?)|capacity limit", re.IGNORECASE
)
"""Texts that say that a plan's day or month is used up; providers send them with the status of a refused key
(docs/facts.md#alchemy-nft-api)."""
_MESSAGE = 2_000
"""Bytes of a refusal that are searched for such a text."""


@dataclass(frozen=True, slots=True)
class MarketAnswer:
    """A marketplace's answer as received, its content unpacked."""

    status: int
    headers: httpx.Headers
    content: bytes


class MarketWire:
    """The client of one marketplace's API.

    While the marketplace's limit or the share of one use is used up, nothing is sent for that use, and ProviderBusy
    says for how long.
    """

    def __init__(
        self, name: str, headers: Mapping[str, str], *, deadline: float = DEADLINE, quota: Quota | None = None
    ) -> None:
        self._name = name
        self._deadline = deadline
        self.quota = quota or Quota(name)
        self._headers = {"Accept": "application/json", "User-Agent": agent()} | dict(headers)
        self._http = GatedClient(name, self._client, FairGate(CONNECTIONS, MOST_FOR_ONE), one_server=True)

    def _client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            headers=self._headers, timeout=timeouts(self._deadline), follow_redirects=False, verify=tls(),
            limits=httpx.Limits(max_connections=CONNECTIONS),
        )  # fmt: skip

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    async def read(
        self, url: str, what: str, *, body: object = None, largest: int = LARGEST_ANSWER, use: Use = Use.RULES
    ) -> object:
        """Return the JSON at an address, or the answer to a JSON body. Raises ProviderError.

        `what` names the requested thing in errors. `use` decides against which share of the limit the read counts.
        """
        with self.quota.one_read(use), provider_reports.watched(self._name.lower()):
            return await self._read(url, what, body, largest, use)

    async def _read(self, url: str, what: str, body: object, largest: int, use: Use) -> object:
        answer = await self._ask(url, body, largest)
        corrected_clock.note(self._name, answer.headers)
        if _is_used_up(answer):
            # The plan stays used up for hours or days. Nothing is sent for a while, as after a 429.
            self.quota.heed(use, 429, {"retry-after": str(LONGEST_PAUSE), **answer.headers})
            raise ProviderBusy(self._name, "its plan is used up", retry_after=self.quota.wait(use))
        self.quota.heed(use, answer.status, answer.headers)
        if fault := self._fault(answer, what, use):
            raise fault
        try:
            return cast("object", orjson.loads(answer.content))
        except orjson.JSONDecodeError:
            raise ProviderConfused(self._name, "the answer is not JSON") from None

    async def _ask(self, url: str, body: object, largest: int) -> MarketAnswer:
        async def exchange(http: httpx.AsyncClient) -> MarketAnswer:
            request = http.build_request(
                "GET" if body is None else "POST", url,
                content=None if body is None else orjson.dumps(body),
                headers={} if body is None else {"Content-Type": "application/json"},
            )  # fmt: skip
            return await self._exchange(http, request, largest)

        try:
            return await self._http.run(exchange, self._deadline)
        except (httpx.TransportError, httpx.DecodingError, TimeoutError) as fault:
            raise ProviderDown(self._name, no_answer(fault)) from None

    async def _exchange(self, http: httpx.AsyncClient, request: httpx.Request, largest: int) -> MarketAnswer:
        answer = await http.send(request, stream=True)
        try:
            content = await read_at_most(answer, largest)
        finally:
            await answer.aclose()
        if content is None:
            raise ProviderConfused(self._name, "the answer is too large")
        return MarketAnswer(answer.status_code, answer.headers, content)

    def _fault(self, answer: MarketAnswer, what: str, use: Use) -> ProviderError | None:
        """Return the error for an answer, or None for success.

        429 and 599 both mean "too many requests" (docs/facts.md#opensea-keys-and-limits).
        """
        status, name = answer.status, self._name
        if status in {429, 599}:
            provider_reports.count(name.lower(), provider_reports.THROTTLED)
            return ProviderBusy(name, "too many requests", retry_after=self.quota.wait(use))
        if status >= 500:
            return ProviderDown(name, f"HTTP {status}", retry_after=seconds_to_wait(answer.headers.get("retry-after")))
        if status == 404:
            return NotThere(name, f"no such {what}")
        if status in {401, 403}:
            return Unauthorized(name, f"the API key is not accepted (HTTP {status})", status=status)
        if status >= 400:
            return ProviderRefused(name, f"HTTP {status}", status=status)
        return None if status == 200 else ProviderConfused(name, f"HTTP {status}")


def _is_used_up(answer: MarketAnswer) -> bool:
    """Return whether a refusal says that the plan is used up, not that the key is wrong."""
    if answer.status not in {402, 403}:
        return False
    return _USED_UP.search(answer.content[:_MESSAGE].decode(errors="replace")) is not None


async def all_pages(
    name: str, read: Callable[[str], Awaitable[tuple[Iterable[AccountItem], str | None]]], most: int, items_a_page: int
) -> tuple[AccountItem, ...]:
    """Return the items of an account's pages, each once.

    `read` returns the page at a cursor and the next cursor. Raises ProviderError for pages that repeat, take too long,
    or are more than `most`.
    """
    items: dict[AccountItem, None] = {}
    seen: set[str] = set()
    cursor = ""
    try:
        async with asyncio.timeout(PAGES_DEADLINE):
            for _ in range(most):
                listed, following = await read(cursor)
                items |= dict.fromkeys(listed)
                if not following:
                    return tuple(items)
                if following in seen:
                    raise ProviderConfused(name, "its pages run in a circle")
                seen.add(following)
                cursor = following
    except TimeoutError:
        raise ProviderDown(name, f"not all pages came within {PAGES_DEADLINE:g} s") from None
    raise ProviderConfused(name, f"it lists more than {items_a_page * most} tokens for this account")
