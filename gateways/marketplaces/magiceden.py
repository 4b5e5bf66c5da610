"""Magic Eden's API v2 about Solana: the tokens that belong to a collection's symbol.

See docs/facts.md#magic-eden-solana-api.
"""

from urllib.parse import quote

from gateways.marketplaces.client import DEADLINE, MarketWire
from gateways.marketplaces.quota import Quota, Use
from gateways.transport.base58 import is_address
from gateways.transport.errors import NotThere, ProviderRefused, Unauthorized
from gateways.transport.json_shape import Shape, listed

MAGIC_EDEN = "Magic Eden"
MOST_LISTED = 20
LIMIT = (120, 60.0)
"""The number of requests without a key, and the seconds for them; no header says how many are left
(docs/facts.md#magic-eden-solana-api)."""


class MagicEden:
    """A marketplace that names collections by its own symbols, which are not on the chain.

    `quota` limits the requests.
    """

    def __init__(self, api_url: str, *, deadline: float = DEADLINE) -> None:
        self._api = f"{api_url.rstrip('/')}/v2"
        # Only lookups use this API, so they need no reserved share.
        self.quota = Quota(MAGIC_EDEN, LIMIT, {})
        self._wire = MarketWire(MAGIC_EDEN, {}, deadline=deadline, quota=self.quota)

    async def close(self) -> None:
        """Close the connections."""
        await self._wire.close()

    async def mints(self, symbol: str) -> tuple[str, ...]:
        """Return mint addresses of some tokens of the collection.

        The result is empty when the symbol is unknown or no token of the collection was traded.
        GET /collections/{symbol}/listings, and …/activities if that lists nothing, because a symbol is only a label and
        the chain knows only its tokens. Both answer 400 or 404 to an unknown symbol
        (docs/facts.md#magic-eden-solana-api).
        """
        for path in (f"listings?offset=0&limit={MOST_LISTED}", f"activities?offset=0&limit={MOST_LISTED}"):
            try:
                address = f"{self._api}/collections/{quote(symbol, safe='')}/{path}"
                said = await self._wire.read(address, "collection", use=Use.LOOKUP)
            except NotThere:
                return ()
            except ProviderRefused as refused:
                if isinstance(refused, Unauthorized) or refused.status != 400:
                    raise
                return ()
            items = [Shape(item, "an entry", MAGIC_EDEN) for item in listed(said, "the list", MAGIC_EDEN)]
            named = dict.fromkeys(item.text_or_none("tokenMint") or "" for item in items)
            if found := tuple(mint for mint in named if is_address(mint)):
                return found
        return ()
