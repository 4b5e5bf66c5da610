"""`/opensea/api/v2`: OpenSea's API, as far as reading accounts, collections and tokens goes."""

import binascii
import json
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from sandbox.base.body import is_whole, parsed
from sandbox.base.budget import Budget
from sandbox.base.faults import Answer
from sandbox.base.sandbox import Sandbox
from sandbox.chains.seeds import Collection
from sandbox.marketplaces import shapes
from sandbox.marketplaces.accounts import Account, Accounts
from sandbox.marketplaces.catalogue import Catalogue, Market, Token
from sandbox.marketplaces.networks import network

READS_AN_HOUR = 7200
_DEFAULT_LIMIT, _MOST = 50, 200
_DEFAULT_HOLDERS, _MOST_HOLDERS = 20, 100

Handler = Callable[[web.Request], Awaitable[Any]]


class OpenSea:
    """The API over accounts and chains. Handlers return the JSON, or raise HTTPNotFound for what does not exist."""

    def __init__(
        self, sandbox: Sandbox, accounts: Accounts, catalogue: Catalogue, budgets: Mapping[str, Budget]
    ) -> None:
        self._sandbox = sandbox
        self._accounts = accounts
        self._catalogue = catalogue
        self._budgets = budgets

    def routes(self) -> list[web.RouteDef]:
        """Return routes for the reads that do not page through events, each with its empty answer.

        See docs/facts.md#opensea-reads.
        """
        nft = "/chain/{chain}/contract/{contract}/nfts/{token}"
        reads: dict[str, tuple[Handler, Any]] = {
            "/accounts/resolve/{who}": (self._resolve, {}),
            "/accounts/{who}": (self._account, None),
            "/chains": (self._chains, {"chains": []}),
            "/collections/{slug}": (self._collection, {}),
            "/collections/{slug}/holders": (self._holders, {"holders": []}),
            "/collection/{slug}/nfts": (self._collection_nfts, {"nfts": []}),
            "/traits/{slug}": (self._traits, {"categories": {}, "counts": {}}),
            "/chain/{chain}/contract/{contract}": (self._contract, {}),
            "/chain/{chain}/contract/{contract}/nfts": (self._contract_nfts, {"nfts": []}),
            nft: (self._nft, {"nft": {}}),
            nft + "/owners": (self._owners, {"owners": []}),
            nft + "/collection": (self._nft_collection, {}),
            "/chain/{chain}/account/{who}/nfts": (self._account_nfts, {"nfts": []}),
        }
        asks: dict[str, tuple[Handler, Any]] = {
            "/nfts/batch": (self._nfts_batch, {"nfts": []}),
            "/collections/batch": (self._collections_batch, {"collections": []}),
            nft + "/refresh": (self._refresh, {}),
        }
        return [
            *[web.get("/opensea/api/v2" + path, self._guarded(*entry)) for path, entry in reads.items()],
            *[web.post("/opensea/api/v2" + path, self._guarded(*entry)) for path, entry in asks.items()],
        ]

    def _guarded(self, handler: Handler, emptiness: Any) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """Return the handler behind the key and the faults."""

        def empty(request: web.Request) -> web.Response:
            who = request.match_info.get("who", "")
            return _json(emptiness if emptiness is not None else _shown(Account(who.lower(), "", "")))

        throttled = "Request was throttled. Expected available in {} second{}."
        faulty: dict[str, Answer] = {
            "429": lambda _: _errors(429, throttled.format(1, ""), {"Retry-After": "1"}),
            "500": lambda _: _errors(500, "Internal server error"),
            "empty": empty,
            "malformed": lambda _: web.Response(text='{"address": "0x', content_type="application/json"),
        }

        async def serve(request: web.Request) -> web.StreamResponse:
            answer = await self._sandbox.faults.apply(request, "opensea", faulty)
            if answer is not None:
                return answer
            key = request.headers.get("X-Api-Key", "")
            if key != self._sandbox.settings["OPENSEA_API_KEY"]:
                return _errors(401, "Invalid API key" if key else "Missing an API key")
            budget = self._budgets.get("opensea")
            if budget is not None and not budget.spend():
                wait = math.ceil(budget.resets_in)
                said = throttled.format(wait, "s" * (wait != 1))
                return _errors(429, said, {"Retry-After": str(wait), **budget.headers()})
            limits = budget.headers() if budget else {}
            try:
                return _json(await handler(request), headers=limits)
            except web.HTTPNotFound as missing:
                return _errors(404, missing.text or "Not found", limits)
            except web.HTTPBadRequest as wrong:
                return _errors(400, wrong.text or "Bad request", limits)

        return serve

    def _since(self) -> float | None:
        fault = self._sandbox.faults.fault("opensea")
        return fault.since if fault and fault.kind == "stale" else None

    def _find_account(self, request: web.Request) -> Account:
        account = self._accounts.profile(request.match_info["who"], self._since())
        if account is None:
            raise web.HTTPNotFound(text="Account not found")
        return account

    def _find_market(self, request: web.Request) -> Market:
        return self._market(request.match_info["chain"])

    def _market(self, name: str) -> Market:
        market = self._catalogue.market(name, self._since())
        if market is None or market.opensea != name:
            raise web.HTTPBadRequest(text=f"Chain {name} is not supported")
        return market

    def _find_contract(self, request: web.Request) -> tuple[Market, Collection]:
        market = self._find_market(request)
        collection = market.contract(request.match_info["contract"])
        if collection is None:
            raise web.HTTPNotFound(text="Contract not found")
        return market, collection

    def _find_collection(self, slug: str) -> list[tuple[Market, Collection]]:
        found = self._catalogue.by_slug(slug, self._since())
        if not found:
            raise web.HTTPNotFound(text="Collection not found")
        return found

    async def _find_nft(self, request: web.Request) -> Token:
        market, collection = self._find_contract(request)
        token = await self._catalogue.token(market, collection, request.match_info["token"])
        if token is None:
            raise web.HTTPNotFound(text="NFT not found")
        return token

    async def _tokens(self, parts: list[tuple[Market, Collection]]) -> list[Token]:
        return [token for part in parts for token in await self._catalogue.tokens(*part)]

    async def _account(self, request: web.Request) -> Any:
        account = self._find_account(request)
        return {**_shown(account), **await self._picture(account)}

    async def _picture(self, account: Account) -> dict[str, Any]:
        """Return the picture of an account with an ENS name, which is one of its NFTs; otherwise an empty object."""
        market = self._catalogue.market("ethereum", self._since()) if account.ens_name else None
        have = await self._catalogue.of_account(market, account.address) if market else []
        if not have:
            return {}
        first, url = have[0], self._catalogue.url
        return {
            "nft_pfp": {
                "contract_address": first.collection.contract,
                "token_id": str(first.id),
                "chain": first.market.opensea,
                "collection_slug": first.collection.slug,
                "image_url": f"{url}/metadata/{first.market.name}/{first.collection.contract}/{first.id}/image.svg",
                "is_verified": True,
            }
        }

    async def _resolve(self, request: web.Request) -> Any:
        account = self._accounts.named(request.match_info["who"], self._since()) or self._find_account(request)
        names = {"username": account.username, "ens_name": account.ens_name}
        return {"address": account.address, **{kind: name for kind, name in names.items() if name}}

    async def _chains(self, request: web.Request) -> Any:
        return {"chains": [network(market.opensea) for market in self._catalogue.markets().values()]}

    async def _collection(self, request: web.Request) -> Any:
        return await self._collection_shape(request.match_info["slug"])

    async def _collection_shape(self, slug: str) -> Any:
        parts = self._find_collection(slug)
        return shapes.collection(self._catalogue.url, parts, len(await self._tokens(parts)))

    async def _collections_batch(self, request: web.Request) -> Any:
        slugs = (await _body(request)).get("slugs")
        if not isinstance(slugs, list):
            raise web.HTTPBadRequest(text="slugs must be a list")
        known = [str(slug) for slug in slugs if self._catalogue.by_slug(str(slug), self._since())]
        return {"collections": [await self._collection_shape(slug) for slug in known]}

    async def _collection_nfts(self, request: web.Request) -> Any:
        wanted = _wanted_traits(request)
        tokens = await self._tokens(self._find_collection(request.match_info["slug"]))
        return self._paged_nfts(request, [token for token in tokens if wanted <= _pairs(token)])

    async def _holders(self, request: web.Request) -> Any:
        tokens = await self._tokens(self._find_collection(request.match_info["slug"]))
        return _paged(request, shapes.holders(tokens), "holders", _DEFAULT_HOLDERS, _MOST_HOLDERS, "cursor")

    async def _traits(self, request: web.Request) -> Any:
        return shapes.traits(await self._tokens(self._find_collection(request.match_info["slug"])))

    async def _contract(self, request: web.Request) -> Any:
        return shapes.contract(*self._find_contract(request))

    async def _contract_nfts(self, request: web.Request) -> Any:
        return self._paged_nfts(request, await self._tokens([self._find_contract(request)]))

    async def _nft(self, request: web.Request) -> Any:
        return {"nft": shapes.detailed(self._catalogue.url, await self._find_nft(request))}

    async def _nfts_batch(self, request: web.Request) -> Any:
        identifiers = (await _body(request)).get("identifiers")
        if not isinstance(identifiers, list):
            raise web.HTTPBadRequest(text="identifiers must be a list")
        wanted: dict[str, list[tuple[str, str]]] = {}
        for one in identifiers:
            if not isinstance(one, dict) or {"chain", "contract_address", "token_id"} - one.keys():
                raise web.HTTPBadRequest(text="an identifier has chain, contract_address and token_id")
            chain, contract, token_id = (str(one[name]) for name in ("chain", "contract_address", "token_id"))
            wanted.setdefault(chain, []).append((contract, token_id))
        found = [
            token
            for chain, places in wanted.items()
            for token in await self._catalogue.chosen(self._market(chain), places)
        ]
        return {"nfts": [shapes.detailed(self._catalogue.url, token) for token in found]}

    async def _nft_collection(self, request: web.Request) -> Any:
        return await self._collection_shape((await self._find_nft(request)).collection.slug)

    async def _refresh(self, request: web.Request) -> Any:
        await self._find_nft(request)
        return {}

    async def _owners(self, request: web.Request) -> Any:
        return _paged(
            request, shapes.owned((await self._find_nft(request)).holders), "owners", _DEFAULT_HOLDERS, _MOST_HOLDERS
        )

    async def _account_nfts(self, request: web.Request) -> Any:
        market = self._find_market(request)
        who = market.address(request.match_info["who"])
        tokens = await self._catalogue.of_account(market, who)
        slug = request.query.get("collection")
        return self._paged_nfts(request, [token for token in tokens if slug in (None, token.collection.slug)])

    def _paged_nfts(self, request: web.Request, tokens: list[Token]) -> Any:
        return _paged(request, [shapes.nft(self._catalogue.url, token) for token in tokens], "nfts")


async def _body(request: web.Request) -> dict[str, Any]:
    try:
        body = parsed(await request.read())
    except ValueError as wrong:
        raise web.HTTPBadRequest(text="the body is not JSON") from wrong
    if not isinstance(body, dict):
        raise web.HTTPBadRequest(text="the body is not an object")
    return body


def _wanted_traits(request: web.Request) -> set[tuple[str, str]]:
    """Return the traits in `traits=[{"traitType", "value"}]`, all of which a token must have."""
    try:
        asked = json.loads(request.query.get("traits", "[]"))
        return {(str(one["traitType"]), str(one["value"])) for one in asked}
    except (ValueError, TypeError, KeyError, RecursionError) as wrong:
        raise web.HTTPBadRequest(text="traits is a JSON list of traitType and value") from wrong


def _pairs(token: Token) -> set[tuple[str, str]]:
    return {(kind, str(value)) for kind, value in token.traits.items()}


def _shown(account: Account) -> dict[str, Any]:
    """Return an AccountResponse; an optional field is absent when it is not set."""
    named = {"username": account.username, "display_name": account.username} if account.username else {}
    named |= {"ens_name": account.ens_name} if account.ens_name else {}
    return {
        "address": account.address,
        **named,
        "is_verified": False,
        "follower_count": 0,
        "following_count": 0,
        "profile_image_url": "",
        "banner_image_url": "",
        "website": "",
        "social_media_accounts": [],
        "bio": account.bio,
        "joined_date": "2026-01-01",
    }


def _paged(
    request: web.Request, items: list[Any], name: str, usual: int = _DEFAULT_LIMIT, most: int = _MOST,
    cursor: str = "next",
) -> Any:  # fmt: skip
    limit = request.query.get("limit", str(usual))
    if not is_whole(limit) or not 1 <= int(limit) <= most:
        raise web.HTTPBadRequest(text=f"limit must be between 1 and {most}")
    try:
        return shapes.page(items, name, int(limit), request.query.get(cursor, ""))
    except (ValueError, binascii.Error) as wrong:
        raise web.HTTPBadRequest(text=f"{cursor} is not a cursor") from wrong


def _json(answer: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    limits = {
        "X-RateLimit-Limit": str(READS_AN_HOUR),
        "X-RateLimit-Remaining": "0" if status == 429 else str(READS_AN_HOUR - 1),
        "X-RateLimit-Reset": str(int(time.time()) + 1),
    }
    return web.json_response(answer, status=status, headers={**limits, **(headers or {})})


def _errors(status: int, message: str, headers: dict[str, str] | None = None) -> web.Response:
    return _json({"errors": [message]}, status, headers)
