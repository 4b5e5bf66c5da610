"""`/opensea/api/v2`: OpenSea's API, as far as reading accounts, collections and tokens goes."""

import binascii
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from aiohttp import web

from sandbox.chains.chain import Chain
from sandbox.chains.seeds import Collection
from sandbox.marketplaces.accounts import Account, Accounts
from sandbox.marketplaces.catalogue import Catalogue, owned, page

if TYPE_CHECKING:
    from sandbox.house import Sandbox

READS_AN_HOUR = 7200
_DEFAULT_LIMIT = 50

Handler = Callable[[web.Request], Awaitable[Any]]


class OpenSea:
    """The API over accounts and chains. Handlers return the JSON; what is not there raises HTTPNotFound."""

    def __init__(self, sandbox: "Sandbox", accounts: Accounts, catalogue: Catalogue) -> None:
        self._sandbox = sandbox
        self._accounts = accounts
        self._catalogue = catalogue

    def routes(self) -> list[web.RouteDef]:
        """Every read of external-apis §2.2 that does not page through events."""
        nft = "/chain/{chain}/contract/{contract}/nfts/{token}"
        table: dict[str, tuple[Handler, Any]] = {
            "/accounts/resolve/{who}": (self._resolve, {}),
            "/accounts/{who}": (self._account, None),
            "/collections/{slug}": (self._collection, {}),
            "/collection/{slug}/nfts": (self._collection_nfts, {"nfts": []}),
            "/traits/{slug}": (self._traits, {"categories": {}, "counts": {}}),
            "/chain/{chain}/contract/{contract}": (self._contract, {}),
            "/chain/{chain}/contract/{contract}/nfts": (self._contract_nfts, {"nfts": []}),
            nft: (self._nft, {"nft": {}}),
            nft + "/owners": (self._owners, {"owners": []}),
            "/chain/{chain}/account/{who}/nfts": (self._account_nfts, {"nfts": []}),
        }
        return [web.get("/opensea/api/v2" + path, self._guarded(*entry)) for path, entry in table.items()]

    def _guarded(self, handler: Handler, emptiness: Any) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """The handler behind the key and the faults."""

        async def throttled(_: web.Request) -> web.Response:
            return _errors(429, "Request was throttled. Expected available in 1 second.", {"Retry-After": "1"})

        async def failed(_: web.Request) -> web.Response:
            return _errors(500, "Internal server error")

        async def empty(request: web.Request) -> web.Response:
            who = request.match_info.get("who", "")
            nothing = emptiness if emptiness is not None else _shown(Account(who.lower(), "", ""))
            return _json(nothing)

        async def malformed(_: web.Request) -> web.Response:
            return web.Response(text='{"address": "0x', content_type="application/json")

        faulty = {"429": throttled, "500": failed, "empty": empty, "malformed": malformed}

        async def serve(request: web.Request) -> web.StreamResponse:
            answer = await self._sandbox.faults.apply(request, "opensea", faulty)
            if answer is not None:
                return answer
            key = request.headers.get("X-Api-Key", "")
            if key != self._sandbox.settings["OPENSEA_API_KEY"]:
                return _errors(401, "Invalid API key" if key else "Missing an API key")
            try:
                return _json(await handler(request))
            except web.HTTPNotFound as missing:
                return _errors(404, missing.text or "Not found")
            except web.HTTPBadRequest as wrong:
                return _errors(400, wrong.text or "Bad request")

        return serve

    def _since(self) -> float | None:
        fault = self._sandbox.faults.fault("opensea")
        return fault.since if fault and fault.kind == "stale" else None

    def _find_account(self, request: web.Request) -> Account:
        account = self._accounts.find(request.match_info["who"], self._since())
        if account is None:
            raise web.HTTPNotFound(text="Account not found")
        return account

    def _find_chain(self, request: web.Request) -> Chain:
        chain = self._catalogue.chain(request.match_info["chain"])
        if chain is None:
            raise web.HTTPBadRequest(text=f"Chain {request.match_info['chain']} is not supported")
        return chain

    def _find_contract(self, request: web.Request) -> tuple[Chain, Collection]:
        chain = self._find_chain(request)
        collection = chain.collections.get(request.match_info["contract"].lower())
        if collection is None:
            raise web.HTTPNotFound(text="Contract not found")
        return chain, collection

    def _find_collection(self, request: web.Request) -> tuple[Chain, Collection]:
        found = self._catalogue.by_slug(request.match_info["slug"])
        if found is None:
            raise web.HTTPNotFound(text="Collection not found")
        return found

    async def _find_nft(self, request: web.Request) -> tuple[Chain, Collection, int, dict[str, int]]:
        chain, collection = self._find_contract(request)
        digits = request.match_info["token"]
        tokens = (await self._catalogue.owners(chain, self._since()))[collection.contract]
        if not digits.isdigit() or int(digits) not in tokens:
            raise web.HTTPNotFound(text="NFT not found")
        return chain, collection, int(digits), tokens[int(digits)]

    async def _account(self, request: web.Request) -> Any:
        return _shown(self._find_account(request))

    async def _resolve(self, request: web.Request) -> Any:
        account = self._find_account(request)
        return {"address": account.address, **({"username": account.username} if account.username else {})}

    async def _collection(self, request: web.Request) -> Any:
        chain, collection = self._find_collection(request)
        tokens = (await self._catalogue.owners(chain, self._since()))[collection.contract]
        return self._catalogue.collection(chain, collection, len(tokens))

    async def _collection_nfts(self, request: web.Request) -> Any:
        chain, collection = self._find_collection(request)
        return _paged(request, await self._catalogue.of_collection(chain, collection, self._since()), "nfts")

    async def _traits(self, request: web.Request) -> Any:
        chain, collection = self._find_collection(request)
        tokens = (await self._catalogue.owners(chain, self._since()))[collection.contract]
        return self._catalogue.traits(collection, tokens)

    async def _contract(self, request: web.Request) -> Any:
        chain, collection = self._find_contract(request)
        standard = "erc1155" if collection.standard == "ERC1155" else "erc721"
        return {
            "address": collection.contract,
            "chain": chain.facts.opensea,
            "collection": collection.slug,
            "contract_standard": standard,
            "name": collection.name,
        }

    async def _contract_nfts(self, request: web.Request) -> Any:
        chain, collection = self._find_contract(request)
        return _paged(request, await self._catalogue.of_collection(chain, collection, self._since()), "nfts")

    async def _nft(self, request: web.Request) -> Any:
        return {"nft": self._catalogue.detailed(*await self._find_nft(request))}

    async def _owners(self, request: web.Request) -> Any:
        *_, holders = await self._find_nft(request)
        return _paged(request, owned(holders), "owners")

    async def _account_nfts(self, request: web.Request) -> Any:
        chain, who = self._find_chain(request), request.match_info["who"].lower()
        items = await self._catalogue.of_account(chain, who, self._since())
        slug = request.query.get("collection")
        return _paged(request, [item for item in items if slug in (None, item["collection"])], "nfts")


def _shown(account: Account) -> dict[str, Any]:
    """AccountResponse: what is optional is absent when it is not set."""
    named = {"username": account.username, "display_name": account.username} if account.username else {}
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


def _paged(request: web.Request, items: list[dict[str, Any]], name: str) -> Any:
    limit = request.query.get("limit", str(_DEFAULT_LIMIT))
    if not limit.isdigit() or not 1 <= int(limit) <= 200:
        raise web.HTTPBadRequest(text="limit must be between 1 and 200")
    try:
        return page(items, name, int(limit), request.query.get("next", ""))
    except (ValueError, binascii.Error) as wrong:
        raise web.HTTPBadRequest(text="next is not a cursor") from wrong


def _json(answer: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    limits = {
        "X-RateLimit-Limit": str(READS_AN_HOUR),
        "X-RateLimit-Remaining": "0" if status == 429 else str(READS_AN_HOUR - 1),
        "X-RateLimit-Reset": str(int(time.time()) + 1),
    }
    return web.json_response(answer, status=status, headers={**limits, **(headers or {})})


def _errors(status: int, message: str, headers: dict[str, str] | None = None) -> web.Response:
    return _json({"errors": [message]}, status, headers)
