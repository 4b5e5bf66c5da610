"""Magic Eden's API v2 about Solana: which tokens a collection's symbol stands for.

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
"""Requests in so many seconds without a key; no header says what is left of them
(docs/facts.md#magic-eden-solana-api)."""


class MagicEden:
    """A marketplace that calls collections by symbols of its own, which are not on the chain.

    `quota` is what may be asked.
    """

    def __init__(self, api_url: str, *, deadline: float = DEADLINE) -> None:
        self._api = f"{api_url.rstrip('/')}/v2"
        # Only lookups come here, so that they need no part to themselves.
        self.quota = Quota(MAGIC_EDEN, LIMIT, {})
        self._wire = MarketWire(MAGIC_EDEN, {}, deadline=deadline, quota=self.quota)

    async def close(self) -> None:
        """Close the connections."""
        await self._wire.close()

    async def mints(self, symbol: str) -> tuple[str, ...]:
        """Return mint addresses of some tokens of the collection.

        None when it is not known or nothing of it was traded. GET /collections/{symbol}/listings, else …/activities: a
        symbol is a label, only its tokens are on the chain. Both answer 400 or 404 to a symbol that they do not know
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
