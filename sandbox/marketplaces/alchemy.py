"""`/alchemy/<network>/nft/v3/<key>`: Alchemy's lists of an account's tokens and of a collection's owners."""

import base64
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from sandbox.base.body import is_whole
from sandbox.base.budget import Budget
from sandbox.base.chain_table import CHAINS
from sandbox.base.faults import Answer
from sandbox.base.sandbox import Sandbox
from sandbox.marketplaces.accounts import is_address
from sandbox.marketplaces.catalogue import Catalogue, Market, Token

KEY = "sandbox-alchemy-key"
NETWORKS = {facts.alchemy: name for name, facts in CHAINS.items()}
MOST = 100
STANDARDS = {"ERC721": "ERC721", "ERC721Enumerable": "ERC721", "ERC1155": "ERC1155"}
UNSUPPORTED = "NO_SUPPORTED_NFT_STANDARD"
MOST_CONTRACTS = 45
"""The most collections to which the list of an account can be limited; see docs/facts.md#alchemy-nft-api."""
MOST_OWNERS = 50_000
"""The most owners of a collection in one page."""
USED_UP = "Monthly capacity limit exceeded. Upgrade your scaling policy for continued service."
"""The answer when a plan's month is used up. Its status, 403, can also mean a wrong key.

See docs/facts.md#alchemy-nft-api.
"""


class Alchemy:
    """Alchemy's two calls that list tokens: those of an owner, and those of a collection."""

    def __init__(self, sandbox: Sandbox, catalogue: Catalogue, budgets: Mapping[str, Budget]) -> None:
        self._sandbox = sandbox
        self._catalogue = catalogue
        self._budgets = budgets

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of `getNFTsForOwner` and `getOwnersForContract`."""
        base = "/alchemy/{network}/nft/v3/{key}"
        return [
            web.get(f"{base}/getNFTsForOwner", self._of_account),
            web.get(f"{base}/getOwnersForContract", self._of_contract),
        ]

    async def _of_account(self, request: web.Request) -> web.StreamResponse:
        answer, market = await self._checked(request, lambda head: _page([], 0, None, head), '{"ownedNfts": [{')
        if answer is not None or market is None:
            return answer or _refused(404, "Unsupported network")
        owner = request.query.get("owner", "")
        if not _is_address(owner):
            return _refused(400, "owner is not a valid address")
        contracts = [contract.lower() for contract in request.query.getall("contractAddresses[]", [])]
        if len(contracts) > MOST_CONTRACTS or not all(map(_is_address, contracts)):
            return _refused(400, f"contractAddresses[] takes at most {MOST_CONTRACTS} addresses")
        tokens = await self._catalogue.of_account(market, owner.lower())
        tokens = [token for token in tokens if not contracts or token.collection.contract in contracts]
        return self._paged(request, tokens, owner.lower(), market)

    async def _of_contract(self, request: web.Request) -> web.StreamResponse:
        answer, market = await self._checked(request, lambda _: {"owners": [], "pageKey": None}, '{"owners": [{')
        if answer is not None or market is None:
            return answer or _refused(404, "Unsupported network")
        contract, start = request.query.get("contractAddress", "").lower(), _start(request.query.get("pageKey"))
        if not _is_address(contract) or start is None:
            return _refused(400, "contractAddress is not a valid address, or pageKey not one of ours")
        collection = market.collections.get(contract)
        tokens = [] if collection is None else await self._catalogue.tokens(market, collection)
        held: dict[str, list[dict[str, Any]]] = {}
        for token in tokens:
            for owner, amount in token.holders.items():
                held.setdefault(owner, []).append({"tokenId": str(token.id), "balance": str(amount)})
        owners = sorted(held)
        end = start + MOST_OWNERS
        following = base64.b64encode(str(end).encode()).decode() if end < len(owners) else None
        shown: list[Any] = owners[start:end]
        if request.query.get("withTokenBalances", "false") == "true":
            shown = [{"ownerAddress": owner, "tokenBalances": held[owner]} for owner in shown]
        return web.json_response({"owners": shown, "pageKey": following})

    async def _checked(
        self, request: web.Request, none: Callable[[int], dict[str, Any]], broken: str
    ) -> tuple[web.StreamResponse | None, Market | None]:
        """Return the answer of a fault or a refusal, or else the network's market; both are None if it is unknown."""

        faulty: dict[str, Answer] = {
            "429": lambda _: _refused(429, "Your app has exceeded its compute units per second capacity."),
            "500": lambda _: _refused(500, "Internal server error"),
            "empty": lambda request: web.json_response(none(self._head(request))),
            "malformed": lambda _: web.Response(text=broken, content_type="application/json"),
        }
        answer = await self._sandbox.faults.apply(request, "alchemy", faulty)
        if answer is not None:
            return answer, None
        if request.match_info["key"] != KEY:
            return _refused(401, "Must be authenticated!"), None
        budget = self._budgets.get("alchemy")
        if budget is not None and not budget.spend():
            return _refused(403, USED_UP), None
        return None, self._market(request)

    def _paged(self, request: web.Request, tokens: list[Token], owner: str, market: Market) -> web.Response:
        size, start = request.query.get("pageSize", str(MOST)), _start(request.query.get("pageKey"))
        if not (is_whole(size) and 1 <= int(size) <= MOST) or start is None:
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

    def _head(self, request: web.Request) -> int:
        market = self._market(request)
        return 0 if market is None else market.block or _newest(market)


def _is_address(text: str) -> bool:
    return text.startswith("0x") and is_address(text)


def _newest(market: Market) -> int:
    return int(getattr(market.chain, "head", 0))


def _token(token: Token, owner: str, *, bare: bool) -> dict[str, Any]:
    contract, amount = token.collection.contract, str(token.holders[owner])
    if bare:
        return {"contractAddress": contract, "tokenId": str(token.id), "balance": amount}
    about = {
        "address": contract,
        "name": token.collection.name,
        "tokenType": STANDARDS.get(token.collection.standard, UNSUPPORTED),
    }
    return {"contract": about, "tokenId": str(token.id), "name": token.name, "balance": amount}


def _page(tokens: list[dict[str, Any]], total: int, following: str | None, block: int) -> dict[str, Any]:
    seen = {"blockNumber": block, "blockHash": None, "blockTimestamp": None}
    return {"ownedNfts": tokens, "totalCount": total, "validAt": seen, "pageKey": following}


def _start(key: str | None) -> int | None:
    """Return where the page begins; None for a key that we did not issue."""
    if not key:
        return 0
    try:
        said = base64.b64decode(key, validate=True).decode()
    except ValueError:
        return None
    return int(said) if is_whole(said) else None


def _refused(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message}}, status=status)
