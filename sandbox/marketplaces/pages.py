"""Pages for people about collections and tokens, at the paths that both marketplaces give them."""

from html import escape

from aiohttp import web

from sandbox.chains.seeds import Collection
from sandbox.marketplaces.catalogue import SOLANA, Catalogue, Market, Token
from sandbox.marketplaces.profile import items, page, picture_path

TITLES = {"opensea": "OpenSea", "magiceden": "Magic Eden"}


class CollectionPages:
    """OpenSea's `/collection`, `/item` and `/assets`; Magic Eden's `/collections`, `/marketplace`, `/item-details`."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    def routes(self) -> list[web.RouteDef]:
        """Return routes for every form of the pages: docs/facts.md#opensea-pages, docs/facts.md#magic-eden-pages."""
        return [
            web.get("/opensea/collection/{slug}", self._by_slug),
            web.get("/opensea/collection/{slug}/overview", self._by_slug),
            web.get("/opensea/item/{chain}/{contract}/{token}", self._item),
            web.get("/opensea/assets/{chain}/{contract}/{token}", self._item),
            web.get("/opensea/assets/{chain}/{contract}", self._by_contract),
            web.get("/magiceden/collections/{chain}/{contract}", self._by_contract),
            web.get("/magiceden/item-details/{chain}/{contract}/{token}", self._item),
            web.get("/magiceden/marketplace/{symbol}", self._by_symbol),
            web.get("/magiceden/item-details/{token}", self._mint),
        ]

    async def _by_slug(self, request: web.Request) -> web.Response:
        return await self._collection(request, self._catalogue.by_slug(request.match_info["slug"]))

    async def _by_symbol(self, request: web.Request) -> web.Response:
        market = self._catalogue.market(SOLANA)
        known = market.collections.values() if market else ()
        found = [(market, one) for one in known if market and one.slug == request.match_info["symbol"]]
        return await self._collection(request, found)

    async def _by_contract(self, request: web.Request) -> web.Response:
        name = request.match_info["contract"]
        market = self._catalogue.market(request.match_info["chain"])
        collection = market.contract(name) if market else None
        if market and collection:
            return await self._collection(request, [(market, collection)])
        return await self._collection(request, [part for part in self._catalogue.by_slug(name) if part[0] == market])

    async def _item(self, request: web.Request) -> web.Response:
        market = self._catalogue.market(request.match_info["chain"])
        collection = market.contract(request.match_info["contract"]) if market else None
        if market is None or collection is None:
            raise web.HTTPNotFound(text="There is no such collection.")
        token = await self._catalogue.token(market, collection, request.match_info["token"])
        return self._token(request, token)

    async def _mint(self, request: web.Request) -> web.Response:
        market = self._catalogue.market(SOLANA)
        for collection in market.collections.values() if market else ():
            token = market and await self._catalogue.token(market, collection, request.match_info["token"])
            if token:
                return self._token(request, token)
        return self._token(request, None)

    async def _collection(self, request: web.Request, parts: list[tuple[Market, Collection]]) -> web.Response:
        if not parts:
            raise web.HTTPNotFound(text="There is no such collection.")
        place = _place(request)
        sections = [
            f"<section><h2>On {escape(market.name)}</h2><code>{escape(one.contract)}</code> {escape(one.standard)}"
            f"{items(place, await self._catalogue.tokens(market, one))}</section>"
            for market, one in parts
        ]
        return _page(request, parts[0][1].name, "".join(sections))

    def _token(self, request: web.Request, token: Token | None) -> web.Response:
        if token is None:
            raise web.HTTPNotFound(text="There is no such token.")
        traits = "".join(
            f"<dt>{escape(kind)}</dt><dd>{escape(str(value))}</dd>" for kind, value in token.traits.items()
        )
        holders = "".join(f"<li><code>{escape(one)}</code> {amount}</li>" for one, amount in token.holders.items())
        body = (
            f'<section><img src="{escape(picture_path(token))}" alt="" width="200" height="200">'
            f"<p><code>{escape(token.collection.contract)}</code> on {escape(token.market.name)}</p></section>"
            f"<section><h2>Traits</h2><dl>{traits or '<dt>None</dt>'}</dl></section>"
            f"<section><h2>Owners</h2><ul>{holders}</ul></section>"
        )
        return _page(request, token.name, body)


def _place(request: web.Request) -> str:
    return request.path.split("/")[1]


def _page(request: web.Request, name: str, body: str) -> web.Response:
    return page(TITLES[_place(request)], name, f"<section><h1>{escape(name)}</h1></section>{body}")
