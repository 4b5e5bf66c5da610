"""`/magiceden/v2`: Magic Eden's public API about Solana: wallets, tokens and collections.

See docs/facts.md#magic-eden-solana-api.
"""

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from sandbox.base.body import is_whole
from sandbox.base.budget import Budget
from sandbox.base.faults import Answer
from sandbox.base.sandbox import Sandbox
from sandbox.chains.seeds import Collection
from sandbox.marketplaces.accounts import Account, Accounts, is_address
from sandbox.marketplaces.catalogue import SOLANA, Catalogue, Market, Token

LAMPORTS = 1_000_000_000
ASKED_SOL = 2
"""The price in SOL of everything that is listed."""

Handler = Callable[[web.Request], Awaitable[Any]]


class MagicEden:
    """The API over accounts and Solana. A collection's symbol, Magic Eden's own label, is its slug here."""

    def __init__(
        self, sandbox: Sandbox, accounts: Accounts, catalogue: Catalogue, budgets: Mapping[str, Budget]
    ) -> None:
        self._sandbox = sandbox
        self._accounts = accounts
        self._catalogue = catalogue
        self._budgets = budgets

    def routes(self) -> list[web.RouteDef]:
        """Return the routes, each with its empty answer."""
        table: dict[str, tuple[Handler, Any]] = {
            "/wallets/{address}": (self._wallet, None),
            "/wallets/{address}/tokens": (self._wallet_tokens, []),
            "/tokens/{mint}": (self._token, {}),
            "/collections": (self._collections, []),
            "/collections/{symbol}/stats": (self._stats, {}),
            "/collections/{symbol}/holder_stats": (self._holder_stats, {}),
            "/collections/{symbol}/attributes": (
                self._attributes,
                {"results": {"symbol": "", "availableAttributes": []}},
            ),
            "/collections/{symbol}/listings": (self._listings, []),
            "/collections/{symbol}/activities": (self._activities, []),
        }
        return [web.get("/magiceden/v2" + path, self._guarded(*entry)) for path, entry in table.items()]

    def _guarded(self, handler: Handler, emptiness: Any) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """Return the handler behind the faults; an unknown thing is answered with 400, as at Magic Eden."""

        def throttled(_: web.Request) -> web.Response:
            budget = self._budgets.get("magiceden")
            wait = "1" if budget is None or budget.left else str(math.ceil(budget.resets_in))
            return web.json_response({"error": "Too Many Requests"}, status=429, headers={"Retry-After": wait})

        def empty(request: web.Request) -> web.Response:
            if emptiness is not None:
                return web.json_response(emptiness)
            return web.json_response(_shown(Account(request.match_info["address"], "", "")))

        faulty: dict[str, Answer] = {
            "429": throttled,
            "empty": empty,
            "malformed": lambda _: web.Response(text='{"walletAddress": "', content_type="application/json"),
        }

        async def serve(request: web.Request) -> web.StreamResponse:
            answer = await self._sandbox.faults.apply(request, "magiceden", faulty)
            if answer is not None:
                return answer
            budget = self._budgets.get("magiceden")
            if budget is not None and not budget.spend():
                return throttled(request)
            try:
                return web.json_response(await handler(request))
            except web.HTTPBadRequest as wrong:
                return web.json_response({"error": wrong.text}, status=400)
            except web.HTTPNotFound as missing:
                return web.json_response({"error": missing.text}, status=404)

        return serve

    def _since(self) -> float | None:
        fault = self._sandbox.faults.fault("magiceden")
        return fault.since if fault and fault.kind == "stale" else None

    def _market(self) -> Market:
        market = self._catalogue.market(SOLANA, self._since())
        if market is None:
            raise web.HTTPBadRequest(text="invalid collection symbol")
        return market

    async def _find_collection(self, request: web.Request) -> tuple[Collection, list[Token]]:
        market, symbol = self._market(), request.match_info["symbol"]
        for collection in market.collections.values():
            if collection.slug == symbol:
                return collection, await self._catalogue.tokens(market, collection)
        raise web.HTTPNotFound(text="collection not found")

    async def _wallet(self, request: web.Request) -> Any:
        address = request.match_info["address"]
        account = self._accounts.find(address, self._since()) if is_address(address) else None
        if account is None:
            raise web.HTTPBadRequest(text="wallet not found")
        return _shown(account)

    async def _wallet_tokens(self, request: web.Request) -> Any:
        have = await self._catalogue.of_account(self._market(), request.match_info["address"])
        symbol, address = request.query.get("collection_symbol"), request.query.get("mcc_address")
        chosen = [
            self._shape(token)
            for token in have
            if symbol in (None, token.collection.slug) and address in (None, token.collection.contract)
        ]
        return _part(request, chosen, 100, 500)

    async def _token(self, request: web.Request) -> Any:
        market, mint = self._market(), request.match_info["mint"]
        for collection in market.collections.values():
            token = await self._catalogue.token(market, collection, mint)
            if token is not None:
                return self._shape(token)
        raise web.HTTPBadRequest(text="token not found")

    async def _collections(self, request: web.Request) -> Any:
        known = [
            {
                "symbol": one.slug,
                "name": one.name,
                "description": f"{one.name} on Solana.",
                "image": self._picture(one, one.contract),
            }
            for one in self._market().collections.values()
        ]
        return _part(request, known, 200, 500)

    async def _stats(self, request: web.Request) -> Any:
        collection, tokens = await self._find_collection(request)
        return {
            "symbol": collection.slug,
            "floorPrice": ASKED_SOL * LAMPORTS,
            "listedCount": len(tokens),
            "volumeAll": ASKED_SOL * LAMPORTS * len(tokens),
        }

    async def _holder_stats(self, request: web.Request) -> Any:
        collection, tokens = await self._find_collection(request)
        amounts = Counter(address for token in tokens for address in token.holders)
        bars = [{"l_val": 1, "hight": sum(1 for amount in amounts.values() if amount == 1)}]
        top = sorted(amounts.items(), key=lambda entry: (-entry[1], entry[0]))
        return {
            "symbol": collection.slug,
            "totalSupply": len(tokens),
            "uniqueHolders": len(amounts),
            "tokenHistogram": {"bars": bars},
            "topHolders": [{"owner": owner, "tokens": amount} for owner, amount in top],
        }

    async def _attributes(self, request: web.Request) -> Any:
        collection, tokens = await self._find_collection(request)
        counts = Counter(pair for token in tokens for pair in token.traits.items())
        available = [
            {
                "attribute": {"trait_type": kind, "value": value},
                "count": count,
                "floor": ASKED_SOL * LAMPORTS,
                "countByListingType": {},
            }
            for (kind, value), count in counts.items()
        ]
        return {"results": {"symbol": collection.slug, "availableAttributes": available}}

    async def _listings(self, request: web.Request) -> Any:
        _, tokens = await self._find_collection(request)
        listed = [
            {
                "pdaAddress": token.collection.contract,
                "auctionHouse": "",
                "tokenAddress": str(token.id),
                "tokenMint": str(token.id),
                "seller": next(iter(token.holders)),
                "tokenSize": 1,
                "price": ASKED_SOL,
                "rarity": {},
                "expiry": -1,
                "token": self._shape(token),
                "listingSource": "M2",
            }
            for token in tokens
        ]
        return _part(request, listed, 20, 100)

    async def _activities(self, request: web.Request) -> Any:
        collection, tokens = await self._find_collection(request)
        done = [
            {
                "signature": str(token.id),
                "type": "list",
                "source": "magiceden_v2",
                "tokenMint": str(token.id),
                "collection": collection.slug,
                "collectionSymbol": collection.slug,
                "slot": 1,
                "blockTime": 1_767_225_600,
                "buyer": None,
                "seller": next(iter(token.holders)),
                "price": ASKED_SOL,
            }
            for token in tokens
        ]
        return _part(request, done, 100, 1000)

    def _shape(self, token: Token) -> dict[str, Any]:
        picture = self._picture(token.collection, str(token.id))
        return {
            "mintAddress": str(token.id),
            "owner": next(iter(token.holders)),
            "supply": 1,
            "collection": token.collection.slug,
            "collectionName": token.collection.name,
            "name": token.name,
            "updateAuthority": token.collection.contract,
            "primarySaleHappened": True,
            "sellerFeeBasisPoints": 500,
            "image": picture,
            "attributes": [{"trait_type": kind, "value": value} for kind, value in token.traits.items()],
            "properties": {"files": [{"uri": picture, "type": "image/svg+xml"}], "category": "image", "creators": []},
            "listStatus": "listed",
        }

    def _picture(self, collection: Collection, asset: str) -> str:
        return f"{self._catalogue.url}/metadata/{SOLANA}/{collection.contract}/{asset}/image.svg"


def _part(request: web.Request, items: list[Any], usual: int, most: int) -> list[Any]:
    offset, limit = request.query.get("offset", "0"), request.query.get("limit", str(usual))
    if not (is_whole(offset) and is_whole(limit) and 1 <= int(limit) <= most):
        raise web.HTTPBadRequest(text=f"limit must be between 1 and {most}")
    return items[int(offset) : int(offset) + int(limit)]


def _shown(account: Account) -> dict[str, Any]:
    shown = {"walletAddress": account.address, "displayName": account.username, "bio": account.bio}
    required = ("walletAddress", "bio")
    return {name: value for name, value in shown.items() if value or name in required}
