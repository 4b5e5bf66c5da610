"""Solana's assets as token records: the traits that the index read from their metadata, or the link to the metadata."""

from collections.abc import Mapping, Sequence

from gateways.chains.catalogue import CHAINS
from gateways.chains.metadata_traits import NoMetadata, TraitList, read
from gateways.chains.node_providers import origin, source_name
from gateways.evm.tokens.token_records import TokenRecord
from gateways.solana.das_assets import Asset, assets
from gateways.solana.das_lists import by_collection, first_page
from gateways.solana.node import SolanaNode, SolanaNodes
from gateways.transport.base58 import addresses, is_address
from gateways.transport.errors import ProviderConfused
from settings import settings


class SolanaRecords:
    """The index of assets (DAS) as TokenRecords. If the index lists no attributes, the metadata decide."""

    def __init__(self, nodes: SolanaNodes) -> None:
        self._nodes = nodes

    async def records(
        self, chain: str, contract: str, token_ids: Sequence[str], *, apart_from: str = ""
    ) -> Mapping[str, TokenRecord]:
        """Return the tokens' records, without unknown tokens and ids that are not mint addresses. By getAssetBatch.

        Raises ProviderConfused where the provider of `apart_from` has all the indexes.
        """
        mints = [one for one in token_ids if is_address(one)]
        asked = _places_of(chain, apart_from)

        async def ask(node: SolanaNode) -> Mapping[str, TokenRecord]:
            if node.source == apart_from or node.index in asked:
                raise ProviderConfused(node.name, "it has been asked already")
            await node.head()
            found = await assets(node, mints, with_metadata=True)
            return {mint: _record(asset, node.source) for mint, asset in found.items() if asset is not None}

        return await self._nodes.first(ask) if mints else {}

    async def sample(self, chain: str, contract: str, most: int) -> Sequence[str]:
        """Return the first assets of the collection, in the order of their addresses."""
        addresses([contract])

        async def ask(node: SolanaNode) -> Sequence[str]:
            await node.head()
            return [asset.id for asset in (await first_page(node, by_collection(contract), most)).assets]

        return await self._nodes.first(ask)


def _places_of(chain: str, source: str) -> set[int]:
    """Return the places in the settings of the nodes that belong to the provider of this source."""
    places, title = range(len(settings().rpc.get(chain, ()))), CHAINS[chain].title
    provider = next((origin(chain, place) for place in places if source_name(title, place) == source), None)
    return {place for place in places if origin(chain, place) == provider}


def _record(asset: Asset, index: str) -> TokenRecord:
    return TokenRecord(asset.link, _traits(asset.attributes), index)


def _traits(attributes: object) -> TraitList | None:
    try:
        found = read(attributes) if attributes else None
    except NoMetadata:
        return None
    return found if found is not None and found.found else None
