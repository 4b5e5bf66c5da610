"""DAS, the index of assets behind a Solana endpoint: lists by owner and by group, searches, single assets."""

from collections.abc import Callable, Iterable
from typing import Any

from sandbox.base.json_rpc import INVALID
from sandbox.solana.asset_shapes import shape
from sandbox.solana.assets import Asset
from sandbox.solana.keys import decoded, is_address
from sandbox.solana.node import RpcError, View

MOST = 1_000
TOKEN_TYPES = ("fungible", "nonfungible", "regularnft", "compressednft", "compressed", "nft", "all")
"""The values of `tokenType` of Helius and Metaplex, in lower case (docs/facts.md#solana-das)."""
SORTS = ("id", "created", "updated", "recent_action", "none")

Named = dict[str, Any]
Method = Callable[[View, Named], Any]


def get_asset(view: View, params: Named) -> Any:
    """Return one asset: `{id, options}`."""
    asset = view.holdings.assets.get(_address(params, "id"))
    if asset is None:
        raise RpcError(-32000, f"Asset Not Found: {params['id']}")
    return shape(view, asset, _options(params))


def get_asset_batch(view: View, params: Named) -> Any:
    """Return several assets: `{ids, options}`; null for an unknown one."""
    ids = params.get("ids")
    if not isinstance(ids, list) or not all(isinstance(one, str) and is_address(one) for one in ids):
        raise RpcError(INVALID, "Invalid params: ids must be a list of addresses.")
    if len(ids) > MOST:
        raise RpcError(INVALID, f"Batch Size Error: {MOST} assets at most.")
    options, known = _options(params), view.holdings.assets
    return [shape(view, known[one], options) if one in known else None for one in ids]


def get_assets_by_owner(view: View, params: Named) -> Any:
    """Return an owner's assets: `{ownerAddress, …}`; without fungible ones unless they are asked for."""
    owner, options = _address(params, "ownerAddress"), _options(params)
    fungible = options.get("showFungible") is True
    found = [a for a in view.holdings.assets.values() if a.owner == owner and (fungible or not a.fungible)]
    return _list(view, params, [] if view.zero else found)


def get_assets_by_group(view: View, params: Named) -> Any:
    """Return a collection's assets: `{groupKey: "collection", groupValue, …}`."""
    value = _address(params, "groupValue")
    if params.get("groupKey") != "collection":
        return _list(view, params, [])
    return _list(view, params, [a for a in view.holdings.assets.values() if a.collection == value and a.verified])


def search_assets(view: View, params: Named) -> Any:
    """Return the assets that match the parameters.

    `{ownerAddress?, tokenType, grouping?, burnt?, compressed?, frozen?, interface?, delegateAddress?, …}`
    """
    kind = params.get("tokenType")
    if not isinstance(kind, str) or kind.lower() not in TOKEN_TYPES:
        raise RpcError(INVALID, "Invalid params: tokenType must be one of fungible, nonFungible, regularNft, …")
    grouping = params.get("grouping")
    if grouping is not None and not (isinstance(grouping, list) and len(grouping) == 2):
        raise RpcError(INVALID, "Invalid params: grouping is a key and a value.")
    if params.get("ownerAddress") is not None:
        _address(params, "ownerAddress")
    tests: list[Callable[[Asset], bool]] = [lambda asset: _is_of(asset, kind.lower())]
    for name, field in (("ownerAddress", "owner"), ("interface", "interface"), ("delegateAddress", "delegate")):
        if params.get(name) is not None:
            tests.append(_equals(field, params[name]))
    tests += [_equals(name, params[name]) for name in ("burnt", "compressed", "frozen") if params.get(name) is not None]
    if grouping is not None:
        tests.append(lambda asset: [asset.verified and "collection", asset.collection] == grouping)
    hidden = view.zero and params.get("ownerAddress") is not None
    found = [a for a in view.holdings.assets.values() if not hidden and all(test(a) for test in tests)]
    return _list(view, params, found)


def _equals(field: str, wanted: Any) -> Callable[[Asset], bool]:
    return lambda asset: getattr(asset, field) == wanted


def _is_of(asset: Asset, kind: str) -> bool:
    match kind:
        case "all":
            return True
        case "fungible":
            return asset.fungible
        case "regularnft":
            return not asset.fungible and not asset.compressed
        case "compressednft" | "compressed":
            return asset.compressed
        case _:
            return not asset.fungible


def _list(view: View, params: Named, found: Iterable[Asset]) -> Any:
    """Return a page of a list, in the order and from the place that were asked for."""
    limit, page = params.get("limit", MOST), params.get("page")
    if not isinstance(limit, int) or not 1 <= limit <= MOST:
        raise RpcError(INVALID, f"Pagination Error. Limit should not be greater than {MOST}.")
    sort = params.get("sortBy") or {}
    if not isinstance(sort, dict):
        raise RpcError(INVALID, "Invalid params: sortBy is an object.")
    by, descending = sort.get("sortBy", "id"), sort.get("sortDirection", "asc") == "desc"
    if by not in SORTS:
        raise RpcError(INVALID, f"Invalid params: unknown sort {by!r}.")
    items = sorted(found, key=_place)
    if by in ("created", "updated", "recent_action"):
        items.sort(key=lambda asset: asset.created if by == "created" else asset.updated)
    if descending:
        items.reverse()
    total = len(items)
    bounds = [name for name in ("before", "after", "cursor") if params.get(name) is not None]
    if bounds and (page is not None or by != "id"):
        raise RpcError(INVALID, "Pagination Error. Only pages, or before, after and cursor with the sort by id.")
    if page is not None:
        if not isinstance(page, int) or page < 1:
            raise RpcError(INVALID, "Pagination Error. Page number must be greater than 0.")
        items = items[(page - 1) * limit :]
    for name in bounds:
        bound = decoded(_address(params, name)) or b""
        later = (name == "before") == descending
        items = [asset for asset in items if (_place(asset) > bound if later else _place(asset) < bound)]
    items = items[:limit]
    options = _options(params)
    answer: dict[str, Any] = {"last_indexed_slot": view.slot, "total": len(items), "limit": limit}
    if options.get("showGrandTotal") is True:
        answer["grand_total"] = total
    if page is not None:
        answer["page"] = page
    elif items and by == "id":
        answer["cursor"] = items[-1].id
    return {**answer, "items": [shape(view, asset, options) for asset in items]}


def _place(asset: Asset) -> bytes:
    return decoded(asset.id) or b""


def _options(params: Named) -> Named:
    """Return the display flags, under either of their names."""
    options = params.get("options") or params.get("displayOptions") or {}
    if not isinstance(options, dict):
        raise RpcError(INVALID, "Invalid params: options is an object.")
    return options


def _address(params: Named, name: str) -> str:
    given = params.get(name)
    if not isinstance(given, str) or not is_address(given):
        raise RpcError(INVALID, f"Invalid params: {name} is not a valid public key.")
    return given


LISTS = frozenset({"getAssetsByOwner", "getAssetsByGroup", "searchAssets"})
LISTS_A_SECOND = 2
"""The lists that a free plan answers each second, when the sandbox is strict (Helius: 2 requests of DAS a second)."""

METHODS: dict[str, tuple[Method, tuple[str, ...]]] = {
    "getAsset": (get_asset, ("id",)),
    "getAssetBatch": (get_asset_batch, ("ids",)),
    "getAssets": (get_asset_batch, ("ids",)),
    "getAssetsByOwner": (get_assets_by_owner, ("ownerAddress", "sortBy", "limit", "page", "before", "after")),
    "getAssetsByGroup": (get_assets_by_group, ("groupKey", "groupValue", "sortBy", "limit", "page", "before", "after")),
    "searchAssets": (search_assets, ()),
}
"""Each method with the order of its parameters, which may also come by position."""


def emptiness(view: View, method: str, params: Named) -> Any:
    """Return a method's answer under the fault `empty`: no items, no asset."""
    if method == "getAsset":
        return None
    if method in ("getAssetBatch", "getAssets"):
        return [None for _ in get_asset_batch(view, params)]
    return _list(view, {name: params[name] for name in ("limit", "page") if name in params}, [])
