"""Collections and tokens in the forms of OpenSea's API (docs/facts.md#opensea-reads)."""

import base64
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sandbox.base.body import is_whole
from sandbox.chains.seeds import Collection
from sandbox.marketplaces.catalogue import Market, Token
from sandbox.marketplaces.networks import coin

Item = dict[str, Any]
STANDARDS = {
    "ERC721": "erc721",
    "ERC721Enumerable": "erc721",
    "ERC1155": "erc1155",
    "Punks": "cryptopunks",
    "Solana": "metaplex",
}


def nft(url: str, token: Token) -> Item:
    """Return an Nft; a field that the description calls a text is left out if there is none."""
    collection, path = token.collection, f"{token.market.name}/{token.collection.contract}/{token.id}"
    return {
        "identifier": str(token.id),
        "collection": collection.slug,
        "contract": collection.contract,
        "token_standard": STANDARDS[collection.standard],
        "name": token.name,
        "description": f"A token of {collection.name}.",
        "image_url": f"{url}/metadata/{path}/image.svg",
        "display_image_url": f"{url}/metadata/{path}/image.svg",
        "metadata_url": f"{url}/metadata/{path}",
        "opensea_url": f"{url}/opensea/item/{token.market.opensea}/{collection.contract}/{token.id}",
        "updated_at": "2026-01-01T00:00:00.000000",
        "is_disabled": False,
        "is_nsfw": False,
        "traits": [{"trait_type": kind, "value": value} for kind, value in token.traits.items()],
    }


def detailed(url: str, token: Token) -> Item:
    """Return an NftDetailed."""
    return {**nft(url, token), "is_suspicious": False, "creator": token.market.deployer, "owners": owned(token.holders)}


def collection(url: str, parts: Sequence[tuple[Market, Collection]], items: int) -> Item:
    """Return a CollectionDetailedResponse, over all the contracts that share the slug."""
    market, first = parts[0]
    return {
        "collection": first.slug,
        "name": first.name,
        "description": f"{first.name} on {', '.join(market.name for market, _ in parts)}.",
        "image_url": f"{url}/metadata/{market.name}/{first.contract}/{picture(first)}/image.svg",
        "banner_image_url": "",
        "owner": market.deployer,
        "safelist_status": "verified" if first.seeded else "not_requested",
        "category": "pfps",
        "is_disabled": False,
        "is_nsfw": False,
        "trait_offers_enabled": False,
        "collection_offers_enabled": False,
        "opensea_url": f"{url}/opensea/collection/{first.slug}",
        "project_url": "",
        "wiki_url": "",
        "discord_url": "",
        "telegram_url": "",
        "twitter_username": "",
        "instagram_username": "",
        "contracts": [{"address": one.contract, "chain": market.opensea} for market, one in parts],
        "editors": [],
        "fees": [],
        "rarity": {
            "strategy_id": "openrarity",
            "strategy_version": "1.0",
            "calculated_at": "2026-01-01T00:00:00.000000",
            "max_rank": items,
            "total_supply": items,
        },
        "total_supply": items,
        "unique_item_count": items,
        "created_date": "2026-01-01",
        "pricing_currencies": {name: coin(url, market.opensea) for name in ("listing_currency", "offer_currency")},
    }


def contract(market: Market, one: Collection) -> Item:
    """Return the answer about a contract."""
    return {
        "address": one.contract,
        "chain": market.opensea,
        "collection": one.slug,
        "contract_standard": STANDARDS[one.standard],
        "name": one.name,
    }


def traits(tokens: Iterable[Token]) -> Item:
    """Return trait counts: how often each text occurs, and the bounds of numbers."""
    counts: dict[str, dict[str, Any]] = {}
    numbers: set[str] = set()
    for token in tokens:
        for kind, value in token.traits.items():
            known = counts.setdefault(kind, {})
            if isinstance(value, str) and kind not in numbers:
                known[value] = known.get(value, 0) + 1
            elif not isinstance(value, str) and (kind in numbers or not known):
                numbers.add(kind)
                known["min"] = min(value, known.get("min", value))
                known["max"] = max(value, known.get("max", value))
            elif not isinstance(value, str):
                # A trait type with both texts and numbers counts as one of texts.
                known[str(value)] = known.get(str(value), 0) + 1
    return {"categories": {kind: "number" if kind in numbers else "string" for kind in counts}, "counts": counts}


def owned(holders: Mapping[str, int]) -> list[Item]:
    """Return the owners; `quantity` is an int32, which made `quantity_string` necessary."""
    return [
        {"address": address, "quantity": min(amount, 2**31 - 1), "quantity_string": str(amount)}
        for address, amount in holders.items()
    ]


def holders(tokens: Iterable[Token]) -> list[Item]:
    """Return the owners of a collection with their numbers of items, largest first."""
    amounts = Counter[str]()
    for token in tokens:
        amounts.update(token.holders)
    whole = amounts.total()
    most_first = sorted(amounts.items(), key=lambda entry: (-entry[1], entry[0]))
    return [
        {"address": address, "quantity": amount, "percentage": round(100 * amount / whole, 4)}
        for address, amount in most_first
    ]


def picture(one: Collection) -> str:
    """Return the token whose picture represents the collection; on Solana the collection has its own picture."""
    return one.contract if one.standard == "Solana" else "1"


def page(items: list[Item], name: str, limit: int, cursor: str) -> Item:
    """Return `{name: items, next?}` from an opaque cursor. Raises ValueError for a cursor that we did not issue."""
    place = base64.urlsafe_b64decode(cursor.encode()).decode() if cursor else "0"
    if not is_whole(place):
        raise ValueError("No cursor of ours begins at such a place.")
    at = int(place)
    answer: Item = {name: items[at : at + limit]}
    if at + limit < len(items):
        answer["next"] = base64.urlsafe_b64encode(str(at + limit).encode()).decode()
    return answer
