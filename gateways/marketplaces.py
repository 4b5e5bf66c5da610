"""Public profiles on marketplaces: what an account says about itself; what that proves is decided elsewhere."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol, cast
from urllib.parse import quote

import httpx
import orjson

from gateways.connections import tls
from gateways.errors import (
    NotThere,
    ProviderBusy,
    ProviderConfused,
    ProviderDown,
    ProviderError,
    ProviderRefused,
    Unauthorized,
    seconds_to_wait,
)
from gateways.shapes import Shape

OPENSEA = "OpenSea"
DEADLINE = 10.0
"""Seconds for one look at a profile."""
LONGEST_PAUSE = 300.0
"""OpenSea's own SDK waits no longer than this either (external-apis §2.1)."""
LARGEST_ANSWER = 1_000_000


@dataclass(frozen=True, slots=True)
class Profile:
    """An account as its marketplace shows it; `address` is the one the answer names, lower-case when hexadecimal.

    The caller compares it with the address it asked about: an account may stand for several wallets (§2.6).
    """

    address: str
    username: str | None
    bio: str


class ProfileSource(Protocol):
    """A marketplace whose profiles we read."""

    async def profile(self, address: str) -> Profile:
        """The profile now; NotThere when the marketplace knows none, another ProviderError when it cannot tell."""
        ...

    def profile_url(self, address: str) -> str:
        """The profile's page for people."""
        ...


class OpenSea:
    """OpenSea's API v2 (external-apis §2.1, §2.2)."""

    def __init__(self, api_url: str, site_url: str, api_key: str | None, *, deadline: float = DEADLINE) -> None:
        self._api, self._site = api_url.rstrip("/"), site_url.rstrip("/")
        self._deadline = deadline
        self._quiet_until = 0.0
        headers = {"Accept": "application/json"} | ({"x-api-key": api_key} if api_key else {})
        self._http = httpx.AsyncClient(headers=headers, follow_redirects=False, verify=tls())

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def profile_url(self, address: str) -> str:
        """`https://opensea.io/<address>` (external-apis §2.4)."""
        return f"{self._site}/{quote(address, safe='')}"

    async def profile(self, address: str) -> Profile:
        """GET /api/v2/accounts/{address}: `address` and `bio` are required fields of the answer (§2.2).

        While OpenSea's limit is used up nothing is sent: ProviderBusy says for how long.
        """
        now = asyncio.get_running_loop().time()
        if now < self._quiet_until:
            raise ProviderBusy(OPENSEA, "its rate limit is used up", retry_after=self._quiet_until - now)
        answer = await self._ask(f"{self._api}/api/v2/accounts/{quote(address, safe='')}")
        self._heed(answer)
        if fault := self._fault(answer):
            raise fault
        try:
            body = cast("object", orjson.loads(answer.content))
        except orjson.JSONDecodeError:
            raise ProviderConfused(OPENSEA, "the answer is not JSON") from None
        account = Shape(body, "the account", OPENSEA)
        found = account.text("address")
        if not found:
            raise ProviderConfused(OPENSEA, "the account has no address")
        return Profile(
            address=found.lower() if found[:2].lower() == "0x" else found,
            username=account.text_or_none("username") or None,
            bio=account.text("bio"),
        )

    async def _ask(self, url: str) -> httpx.Response:
        try:
            async with asyncio.timeout(self._deadline), self._http.stream("GET", url, timeout=self._deadline) as answer:
                content = b""
                async for piece in answer.aiter_bytes():
                    content += piece
                    if len(content) > LARGEST_ANSWER:
                        raise ProviderConfused(OPENSEA, "the answer is too large")
                return httpx.Response(answer.status_code, headers=_plain(answer.headers), content=content)
        except (httpx.TransportError, httpx.DecodingError, TimeoutError) as fault:
            raise ProviderDown(OPENSEA, f"no answer ({type(fault).__name__})") from None

    def _heed(self, answer: httpx.Response) -> None:
        """Remember until when nothing should be sent: Remaining and Reset (Unix seconds), Retry-After (§2.1)."""
        pause = 0.0
        if answer.headers.get("x-ratelimit-remaining") == "0":
            try:
                pause = float(answer.headers.get("x-ratelimit-reset", "")) - datetime.now(UTC).timestamp()
            except ValueError:
                pause = 0.0
        if answer.status_code in {429, 599}:
            pause = max(pause, seconds_to_wait(answer.headers.get("retry-after")) or 1.0)
        if pause > 0:
            until = asyncio.get_running_loop().time() + min(pause, LONGEST_PAUSE)
            self._quiet_until = max(self._quiet_until, until)

    def _fault(self, answer: httpx.Response) -> ProviderError | None:
        """429 and 599 both mean "too many" (OpenSea's SDK, §2.1)."""
        status = answer.status_code
        if status in {429, 599}:
            wait = self._quiet_until - asyncio.get_running_loop().time()
            return ProviderBusy(OPENSEA, "too many requests", retry_after=max(wait, 1.0))
        if status >= 500:
            return ProviderDown(OPENSEA, f"HTTP {status}")
        if status == 404:
            return NotThere(OPENSEA, "no such account")
        if status in {401, 403}:
            return Unauthorized(OPENSEA, f"the API key is not accepted (HTTP {status})", status=status)
        if status >= 400:
            return ProviderRefused(OPENSEA, f"HTTP {status}", status=status)
        return None if status == 200 else ProviderConfused(OPENSEA, f"HTTP {status}")


def _plain(headers: httpx.Headers) -> dict[str, str]:
    """The headers without those about an encoding that has been undone already."""
    return {name: value for name, value in headers.items() if name not in {"content-encoding", "content-length"}}
