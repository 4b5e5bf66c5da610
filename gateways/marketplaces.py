"""Marketplaces: what an account says about itself and what collections are called; it is proof of nothing here."""

import asyncio
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol, cast
from urllib.parse import quote

import httpx
import orjson

from gateways.chain_table import CHAINS
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
LONGEST_NAME = 200
_OUR_CHAINS = {chain.opensea: key for key, chain in CHAINS.items()}


@dataclass(frozen=True, slots=True)
class Profile:
    """An account as its marketplace shows it; `address` is the one the answer names, lower-case when hexadecimal.

    The caller compares it with the address it asked about: an account may stand for several wallets (§2.6).
    """

    address: str
    username: str | None
    bio: str


@dataclass(frozen=True, slots=True)
class CollectionFacts:
    """A collection as its marketplace shows it: `contracts` are `(chain, address)`, the chain by our key if it is ours.

    `name` is one line of printable text of at most 200 characters; empty when there is none.
    """

    slug: str
    name: str
    contracts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ContractFacts:
    """A contract as the marketplace knows it, and the slug of its collection."""

    slug: str
    name: str


class Marketplace(Protocol):
    """A marketplace whose profiles and collections we read."""

    async def profile(self, address: str) -> Profile:
        """The profile now; NotThere when the marketplace knows none, another ProviderError when it cannot tell."""
        ...

    def profile_url(self, address: str) -> str:
        """The profile's page for people."""
        ...

    async def collection(self, slug: str) -> CollectionFacts:
        """The collection with this slug; NotThere when there is none."""
        ...

    async def contract(self, chain: str, address: str) -> ContractFacts:
        """The contract on one of our chains; NotThere when the marketplace does not know it."""
        ...

    async def traits(self, slug: str) -> Mapping[str, tuple[str, ...]]:
        """Each trait of a collection with its values; NotThere when there is no such collection."""
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
        account = await self._read(f"accounts/{quote(address, safe='')}", "account")
        found = account.text("address")
        if not found:
            raise ProviderConfused(OPENSEA, "the account has no address")
        return Profile(
            address=_lowered(found),
            username=account.text_or_none("username") or None,
            bio=account.text("bio"),
        )

    async def collection(self, slug: str) -> CollectionFacts:
        """GET /api/v2/collections/{slug}; a collection may have several contracts, even on several chains (§2.2)."""
        found = await self._read(f"collections/{quote(slug, safe='')}", "collection")
        contracts = [Shape(item, "a contract", OPENSEA) for item in found.items("contracts")]
        return CollectionFacts(
            slug=found.text("collection"),
            name=_line(found.text("name")),
            contracts=tuple((_our_chain(one.text("chain")), _lowered(one.text("address"))) for one in contracts),
        )

    async def contract(self, chain: str, address: str) -> ContractFacts:
        """GET /api/v2/chain/{chain}/contract/{address}: all fields are required (§2.2)."""
        found = await self._read(f"chain/{CHAINS[chain].opensea}/contract/{quote(address, safe='')}", "contract")
        if _lowered(found.text("address")) != _lowered(address):
            raise ProviderConfused(OPENSEA, "the answer is about another contract")
        return ContractFacts(slug=found.text("collection"), name=_line(found.text("name")))

    async def traits(self, slug: str) -> Mapping[str, tuple[str, ...]]:
        """GET /api/v2/traits/{slug}: texts with how many tokens have each; of numbers only the bounds, so no values."""
        found = await self._read(f"traits/{quote(slug, safe='')}", "collection")
        kinds, counts = found.inner("categories"), found.inner("counts")
        return {
            name: tuple(counts.inner(name).names()) if kinds.text(name) == "string" else () for name in kinds.names()
        }

    async def _read(self, path: str, what: str) -> Shape:
        """The object at a path; while the limit is used up nothing is sent, and ProviderBusy says for how long."""
        now = asyncio.get_running_loop().time()
        if now < self._quiet_until:
            raise ProviderBusy(OPENSEA, "its rate limit is used up", retry_after=self._quiet_until - now)
        answer = await self._ask(f"{self._api}/api/v2/{path}")
        self._heed(answer)
        if fault := self._fault(answer, what):
            raise fault
        try:
            body = cast("object", orjson.loads(answer.content))
        except orjson.JSONDecodeError:
            raise ProviderConfused(OPENSEA, "the answer is not JSON") from None
        return Shape(body, f"the {what}", OPENSEA)

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

    def _fault(self, answer: httpx.Response, what: str) -> ProviderError | None:
        """429 and 599 both mean "too many" (OpenSea's SDK, §2.1)."""
        status = answer.status_code
        if status in {429, 599}:
            wait = self._quiet_until - asyncio.get_running_loop().time()
            return ProviderBusy(OPENSEA, "too many requests", retry_after=max(wait, 1.0))
        if status >= 500:
            return ProviderDown(OPENSEA, f"HTTP {status}")
        if status == 404:
            return NotThere(OPENSEA, f"no such {what}")
        if status in {401, 403}:
            return Unauthorized(OPENSEA, f"the API key is not accepted (HTTP {status})", status=status)
        if status >= 400:
            return ProviderRefused(OPENSEA, f"HTTP {status}", status=status)
        return None if status == 200 else ProviderConfused(OPENSEA, f"HTTP {status}")


def _plain(headers: httpx.Headers) -> dict[str, str]:
    """The headers without those about an encoding that has been undone already."""
    return {name: value for name, value in headers.items() if name not in {"content-encoding", "content-length"}}


def _lowered(address: str) -> str:
    """Hexadecimal addresses in lower case, others (case matters on Solana) as they are."""
    return address.lower() if address[:2].lower() == "0x" else address


def _our_chain(name: str) -> str:
    return _OUR_CHAINS.get(name, name)


def _line(text: str) -> str:
    """Anybody can name a collection: one line, without what is invisible or turns the text around."""
    return " ".join("".join(one for one in text if one.isspace() or unicodedata.category(one)[0] != "C").split())[
        :LONGEST_NAME
    ].strip()
