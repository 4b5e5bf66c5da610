"""The owners of a whole Solana collection, page by page; an interrupted reader continues after its last page."""

from typing import NamedTuple

from gateways.solana.client import as_of
from gateways.solana.das_assets import Kind
from gateways.solana.das_lists import BROKEN_OFF, AssetPage, by_collection, first_page, pages
from gateways.solana.empty_answers import doubt_silence
from gateways.solana.node import SolanaNode, SolanaNodes
from gateways.transport.errors import ProviderConfused


class OwnersPage(NamedTuple):
    """The counted assets of one page, each with its owner."""

    owners: dict[str, str]
    """Asset → owner."""
    unclear: int
    """The number of assets with an unknown kind or owner, so that it is unknown whether anybody holds them."""
    after: str | None
    """The asset after which the next page begins; None at the end."""
    slot: int
    """The slot up to which the index had read the chain."""


class CollectionOwners:
    """The owners of collections' assets, from one endpoint's index. A failure raises ProviderError; no list is cut."""

    def __init__(self, nodes: SolanaNodes) -> None:
        self._nodes = nodes

    async def page(self, collection: str, after: str | None = None, endpoint: int | None = None) -> OwnersPage:
        """Return the page after an asset, without one the first page. Raises ProviderError.

        An end is believed only if the index still lists other assets.
        """

        async def ask(node: SolanaNode) -> OwnersPage:
            head = await node.head()
            found = await _page(node, collection, after)
            if found is None:
                await _believe_the_end(node, collection, after)
                return OwnersPage({}, 0, None, head.block)
            slot = as_of(node, head, found.slot, 0).block
            counted = [one for one in found.assets if one.counts and one.collection == collection]
            clear = {one.id: one.owner for one in counted if one.owner and one.kind is Kind.NFT}
            return OwnersPage(clear, len(counted) - len(clear), found.assets[-1].id, slot)

        return await self._nodes.first(ask, endpoint=endpoint)


async def _page(node: SolanaNode, collection: str, after: str | None) -> AssetPage | None:
    async for page in pages(node, by_collection(collection), bounds={"after": after} if after else None):
        return page
    return None


async def _believe_the_end(node: SolanaNode, collection: str, after: str | None) -> None:
    """Raise ProviderConfused if the index lists nothing at all, or lists something after this place on a second try.

    The second try comes last, so that an index that returns nothing for a moment does not end the list.
    """
    if after is None:
        await doubt_silence(node, collection, owners_lists=False)
    elif not (await first_page(node, by_collection(collection), 1)).assets:
        raise ProviderConfused(node.name, BROKEN_OFF)
    if await _page(node, collection, after) is not None:
        raise ProviderConfused(node.name, BROKEN_OFF)
