"""`/alchemy/<network>/nft/v3/<key>`: Alchemy's list of what an account has, as its NFT API v3 gives it."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from sandbox.base.budget import Budget
from sandbox.base.chain_table import CHAINS
from sandbox.base.sandbox import Sandbox
from sandbox.marketplaces.catalogue import Catalogue, Market, Token

KEY = "sandbox-alchemy-key"
NETWORKS = {facts.alchemy: name for name, facts in CHAINS.items()}
MOST = 100
USED_UP = "Monthly capacity limit exceeded. Upgrade your scaling policy for continued service."
"""The answer when a plan's month is used up. It has the status of a wrong key (docs/facts.md#alchemy-nft-api)."""


class Alchemy:
    """The one call of it that lists an owner's tokens."""

    def __init__(self, sandbox: Sandbox, catalogue: Catalogue, budgets: Mapping[str, Budget]) -> None:
        self._sandbox = sandbox
        self._catalogue = catalogue
        self._budgets = budgets

    def routes(self) -> list[web.RouteDef]:
        """`getNFTsForOwner`."""
        return [web.get("/alchemy/{network}/nft/v3/{key}/getNFTsForOwner", self._serve)]

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        async def throttled(_: web.Request) -> web.Response:
            return _refused(429, "Your app has exceeded its compute units per second capacity.")

        async def failed(_: web.Request) -> web.Response:
            return _refused(500, "Internal server error")

        async def empty(request: web.Request) -> web.Response:
            return web.json_response(_page([], 0, None, await self._head(request)))

        async def malformed(_: web.Request) -> web.Response:
            return web.Response(text='{"ownedNfts": [{', content_type="application/json")

        faulty = {"429": throttled, "500": failed, "empty": empty, "malformed": malformed}
        answer = await self._sandbox.faults.apply(request, "alchemy", faulty)
        if answer is not None:
            return answer
        market = self._market(request)
        if request.match_info["key"] != KEY:
            return _refused(401, "Must be authenticated!")
        budget = self._budgets.get("alchemy")
        if budget is not None and not budget.spend():
            return _refused(403, USED_UP)
        if market is None:
            return _refused(404, "Unsupported network")
        owner = request.query.get("owner", "")
        if not (owner.startswith("0x") and len(owner) == 42):
            return _refused(400, "owner is not a valid address")
        tokens = await self._catalogue.of_account(market, owner.lower())
        return self._paged(request, tokens, owner.lower(), market)

    def _paged(self, request: web.Request, tokens: list[Token], owner: str, market: Market) -> web.Response:
        size, start = request.query.get("pageSize", str(MOST)), _start(request.query.get("pageKey"))
        if not (size.isdigit() and 1 <= int(size) <= MOST) or start is None:
            return _refused(400, f"pageSize is 1 to {MOST}, and pageKey one of ours")
        end = start + int(size)
        following = base64.b64encode(str(end).encode()).decode() if end < len(tokens) else None
        bare = request.query.get("withMetadata", "true") == "false"
        shown = [_token(token, owner, bare=bare) for token in tokens[start:end]]
        return web.json_response(_page(shown, len(tokens), following, market.block or _newest(market)))

    def _market(self, request: web.Request) -> Market | None:
        fault = self._sandbox.faults.fault("alchemy")
        since = fault.since if fault and fault.kind == "stale" else None
        name = NETWORKS.get(request.match_info["network"])
        return self._catalogue.market(name, since) if name is not None else None

    async def _head(self, request: web.Request) -> int:
        market = self._market(request)
        return 0 if market is None else market.block or _newest(market)


def _newest(market: Market) -> int:
    return int(getattr(market.chain, "head", 0))


def _token(token: Token, owner: str, *, bare: bool) -> dict[str, Any]:
    contract, amount = token.collection.contract, str(token.holders[owner])
    if bare:
        return {"contractAddress": contract, "tokenId": str(token.id), "balance": amount}
    about = {"address": contract, "name": token.collection.name, "tokenType": token.collection.standard[:7]}
    return {"contract": about, "tokenId": str(token.id), "name": token.name, "balance": amount}


def _page(tokens: list[dict[str, Any]], total: int, following: str | None, block: int) -> dict[str, Any]:
    seen = {"blockNumber": block, "blockHash": None, "blockTimestamp": None}
    return {"ownedNfts": tokens, "totalCount": total, "validAt": seen, "pageKey": following}


def _start(key: str | None) -> int | None:
    """Where the page begins; None for a key that is none of ours."""
    if not key:
        return 0
    try:
        said = base64.b64decode(key, validate=True)
    except binascii.Error:
        return None
    return int(said) if said.isdigit() else None


def _refused(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message}}, status=status)
