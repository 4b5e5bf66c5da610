"""An asset in the form of DAS (docs/facts.md#solana-das)."""

from typing import Any

from sandbox.base.people import base58
from sandbox.solana.assets import AUTHORITY, Asset
from sandbox.solana.keys import address_of
from sandbox.solana.node import View

TOKEN_STANDARDS = {
    "ProgrammableNFT": "ProgrammableNonFungible",
    "FungibleToken": "Fungible",
    "FungibleAsset": "FungibleAsset",
}


def shape(view: View, asset: Asset, options: dict[str, Any]) -> dict[str, Any]:
    """Return the asset; `showUnverifiedCollections` and `showCollectionMetadata` add to its grouping."""
    json_uri = f"{view.url}/metadata/solana/{asset.collection or asset.id}/{asset.id}"
    image = f"{json_uri}/image.svg"
    traits = view.holdings.traits_of(asset)
    metadata: dict[str, Any] = {
        "attributes": [{"value": value, "trait_type": kind} for kind, value in traits.items()],
        "description": f"{asset.name} on Solana.",
        "name": asset.name,
        "symbol": "".join(word[0] for word in asset.name.split() if word[0].isalpha()).upper(),
    }
    if not asset.interface.startswith("MplCore"):
        metadata["token_standard"] = TOKEN_STANDARDS.get(asset.interface, "NonFungible")
    shown: dict[str, Any] = {
        "interface": asset.interface,
        "id": asset.id,
        "content": {
            "$schema": "https://schema.metaplex.com/nft1.0.json",
            "json_uri": json_uri,
            "files": [{"uri": image, "mime": "image/svg+xml"}],
            "metadata": metadata,
            "links": {"image": image},
        },
        "authorities": [{"address": AUTHORITY, "scopes": ["full"]}],
        "compression": _compression(asset),
        "grouping": _grouping(view, asset, options),
        "royalty": {
            "royalty_model": "creators",
            "target": None,
            "percent": 0.05,
            "basis_points": 500,
            "primary_sale_happened": True,
            "locked": False,
        },
        "creators": [{"address": AUTHORITY, "share": 100, "verified": True}],
        "ownership": {
            "frozen": asset.frozen,
            "delegated": asset.delegate is not None,
            "delegate": asset.delegate,
            "ownership_model": "token" if asset.fungible else "single",
            "owner": asset.owner,
        },
        "supply": {"print_max_supply": 0, "print_current_supply": 0, "edition_nonce": 254},
        "mutable": True,
        "burnt": asset.burnt,
    }
    if asset.interface.startswith("MplCore"):
        shown["supply"] = None
        shown["mpl_core_info"] = {"plugins_json_version": 1}
    if asset.interface == "MplCoreCollection":
        members = [one for one in view.holdings.assets.values() if one.collection == asset.id]
        size = sum(not one.burnt for one in members)
        shown["mpl_core_info"] |= {"num_minted": len(members), "current_size": size}
    if asset.fungible and (coin := view.holdings.mint(asset.id)) is not None:
        info = {"supply": coin.supply, "decimals": coin.decimals, "token_program": coin.program}
        shown["token_info"] = {**info, "symbol": coin.symbol} if coin.symbol else info
    return shown


def _grouping(view: View, asset: Asset, options: dict[str, Any]) -> list[dict[str, Any]]:
    unverified = options.get("showUnverifiedCollections") is True
    if not asset.collection or not (asset.verified or unverified):
        return []
    group: dict[str, Any] = {"group_key": "collection", "group_value": asset.collection}
    if unverified:
        group["verified"] = asset.verified
    parent = view.holdings.assets.get(asset.collection)
    if options.get("showCollectionMetadata") is True and parent is not None:
        group["collection_metadata"] = {"name": parent.name, "symbol": "", "image": "", "description": ""}
    return [group]


def _compression(asset: Asset) -> dict[str, Any]:
    def fill(part: str) -> str:
        return address_of(f"{part} {asset.id}") if asset.compressed else ""

    return {
        "eligible": False,
        "compressed": asset.compressed,
        "data_hash": fill("data"),
        "creator_hash": fill("creator"),
        "asset_hash": fill("asset"),
        "tree": base58(b"sandbox tree".ljust(32, b"\1")) if asset.compressed else "",
        "seq": 1 if asset.compressed else 0,
        "leaf_id": int.from_bytes(address_of(asset.id).encode()[:3]) if asset.compressed else 0,
    }
