"""DAS's lists, by owner and by collection, read up to the last page or not at all (docs/facts.md#solana-das)."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from gateways.solana.das_assets import A_PAGE, Asset, read_asset
from gateways.solana.node import SolanaNode
from gateways.transport.base58 import ADDRESS_BYTES, decode, encode
from gateways.transport.errors import ProviderConfused
from gateways.transport.exchanges import together
from gateways.transport.json_shape import Shape

RANGES = 4
"""Parts of a long list that are read concurrently."""
BROKEN_OFF = "its list broke off"

Call = tuple[str, Mapping[str, object]]


class _RangesIgnored(Exception):
    """The index returned assets outside the requested range of ids, or none at all."""


class _TooManyPages(Exception):
    """There are more pages than the caller wants."""


@dataclass(frozen=True, slots=True)
class AssetPage:
    """A part of a list. `slot` is the one up to which the index had read the chain; None where it does not say."""

    assets: tuple[Asset, ...]
    slot: int | None


def by_owner(owner: str) -> Call:
    """Return the call for everything an address owns, without coins."""
    return "getAssetsByOwner", {"ownerAddress": owner}


def by_collection(collection: str) -> Call:
    """Return the call for everything in a collection."""
    return "getAssetsByGroup", {"groupKey": "collection", "groupValue": collection}


async def first_page(node: SolanaNode, call: Call, limit: int) -> AssetPage:
    """Return the beginning of a list, in the order of ids."""
    return await _page(node, call, limit, {})


async def pages(
    node: SolanaNode, call: Call, limit: int = A_PAGE, *, bounds: Mapping[str, object] | None = None
) -> AsyncIterator[AssetPage]:
    """Yield every page of a list, or of the part within `bounds` (after and before). Raises ProviderError.

    Only a read up to the end has the whole list. A list ends with a page without items; more pages may follow a short
    one. Each page begins after the last id of the page before, so that an asset that is added or removed meanwhile does
    not shift others; an index that ignores this would repeat its first page without end. An end right after a full page
    is checked, because a failing index ends its lists like that.
    """
    place, full = dict(bounds or {}), False
    seen = {str(place["after"])} if "after" in place else set[str]()
    while True:
        page = await _page(node, call, limit, place)
        if not page.assets:
            if full and not (await _page(node, call, 1, {})).assets:
                raise ProviderConfused(node.name, BROKEN_OFF)
            return
        ids = {asset.id for asset in page.assets}
        if ids & seen or len(ids) < len(page.assets):
            raise ProviderConfused(node.name, "its list repeats itself")
        seen |= ids
        place["after"], full = page.assets[-1].id, len(page.assets) >= limit
        yield page


async def everything(node: SolanaNode, call: Call, most_pages: int) -> list[AssetPage] | None:
    """Return a whole list; None if it has more than `most_pages` pages. Raises ProviderError.

    A long list is read in RANGES concurrent parts if the index respects the bounds, otherwise page by page.
    """
    first = await first_page(node, call, A_PAGE)
    if not first.assets:
        return []
    last = first.assets[-1].id
    parts = _parts(last) if len(first.assets) >= A_PAGE else [{"after": last}]
    try:
        try:
            read = await together(_part(node, call, bounds, most_pages) for bounds in parts)
            if len(parts) > 1 and not any(read):
                raise _RangesIgnored
        except _RangesIgnored:
            read = [await _part(node, call, {"after": last}, most_pages)]
    except _TooManyPages:
        return None
    if len(parts) > 1 and not (await first_page(node, call, 1)).assets:
        raise ProviderConfused(node.name, BROKEN_OFF)
    found = [first, *(page for part in read for page in part)]
    return found if len(found) <= most_pages else None


async def _part(node: SolanaNode, call: Call, bounds: Mapping[str, str], most_pages: int) -> list[AssetPage]:
    lowest, highest = decode(bounds["after"]) or b"", decode(bounds.get("before", "")) or None
    found: list[AssetPage] = []
    async for page in pages(node, call, A_PAGE, bounds=bounds):
        if highest is not None and any(not lowest < (decode(one.id) or b"") < highest for one in page.assets):
            raise _RangesIgnored
        found.append(page)
        if len(found) >= most_pages:
            raise _TooManyPages
    return found


def _parts(after: str) -> list[Mapping[str, str]]:
    """Divide the ids after one into equal ranges. Ids are hashes, so they are spread evenly over all addresses."""
    start, end = int.from_bytes(decode(after) or b"", "big"), 2 ** (8 * ADDRESS_BYTES) - 1
    cuts = [start + (end - start) * part // RANGES for part in range(1, RANGES)]
    edges = [after, *(encode(cut.to_bytes(ADDRESS_BYTES, "big")) for cut in cuts), encode(b"\xff" * ADDRESS_BYTES)]
    return [{"after": low, "before": high} for low, high in pairwise(edges)]


async def _page(node: SolanaNode, call: Call, limit: int, place: Mapping[str, object]) -> AssetPage:
    method, criteria = call
    order = {"sortBy": "id", "sortDirection": "asc"}
    said = Shape(await node.ask(method, {**criteria, "limit": limit, "sortBy": order, **place}), "a list", node.name)
    if said.has("assets"):
        said = said.inner("assets")
    if said.has("errors") and said.items("errors"):
        raise ProviderConfused(node.name, "it could not read some assets of a list")
    slot = said.number("last_indexed_slot") if said.has("last_indexed_slot") else None
    return AssetPage(tuple(read_asset(node.name, item) for item in said.items("items")), slot)
