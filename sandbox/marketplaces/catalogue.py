"""What a marketplace shows of the chains, in the forms of OpenSea's API."""

import base64
from typing import TYPE_CHECKING, Any

from sandbox.chains.chain import Chain
from sandbox.chains.ledger import Owners
from sandbox.chains.seeds import Collection
from sandbox.chains.table import CHAINS

if TYPE_CHECKING:
    from sandbox.house import Sandbox

Item = dict[str, Any]
STANDARDS = {"ERC721": "erc721", "ERC721Enumerable": "erc721", "ERC1155": "erc1155"}
BY_OPENSEA_NAME = {facts.opensea: name for name, facts in CHAINS.items()}


class Catalogue:
    """Collections and tokens of all running chains. `since` is the moment at which a stale indexer stopped, or None."""

    def __init__(self, sandbox: "Sandbox") -> None:
        self._sandbox = sandbox

    def chains(self) -> dict[str, Chain]:
        """The chains by our names; none where the sandbox runs without."""
        chains = self._sandbox.chains
        return getattr(chains, "by_name", {})

    def chain(self, opensea_name: str) -> Chain | None:
        """The chain that OpenSea calls so."""
        return self.chains().get(BY_OPENSEA_NAME.get(opensea_name, ""))

    def by_slug(self, slug: str) -> tuple[Chain, Collection] | None:
        """The collection with this slug on whichever chain; slugs are one name space."""
        for chain in self.chains().values():
            for collection in chain.collections.values():
                if collection.slug == slug:
                    return chain, collection
        return None

    async def owners(self, chain: Chain, since: float | None) -> dict[str, Owners]:
        """Contract → owners, now or when the indexer stopped."""
        return await chain.owners(None if since is None else chain.head_at(since))

    async def of_account(self, chain: Chain, address: str, since: float | None) -> list[Item]:
        """Everything an address has on a chain."""
        found = await self.owners(chain, since)
        return [
            self.nft(chain, chain.collections[contract], token)
            for contract, tokens in found.items()
            for token, holders in tokens.items()
            if address in holders
        ]

    async def of_collection(self, chain: Chain, collection: Collection, since: float | None) -> list[Item]:
        """Every token of a collection that somebody has."""
        tokens = (await self.owners(chain, since))[collection.contract]
        return [self.nft(chain, collection, token) for token in tokens]

    def nft(self, chain: Chain, collection: Collection, token: int) -> Item:
        """OpenSea's Nft (external-apis §2.2)."""
        url, path = self._sandbox.url, f"{chain.facts.name}/{collection.contract}/{token}"
        return {
            "identifier": str(token),
            "collection": collection.slug,
            "contract": collection.contract,
            "token_standard": STANDARDS[collection.standard],
            "name": f"{collection.name} #{token}",
            "description": f"A token of {collection.name}.",
            "image_url": f"{url}/metadata/{path}/image.svg",
            "display_image_url": f"{url}/metadata/{path}/image.svg",
            "display_animation_url": None,
            "metadata_url": f"{url}/metadata/{path}",
            "opensea_url": f"{url}/opensea/item/{chain.facts.opensea}/{collection.contract}/{token}",
            "updated_at": "2026-01-01T00:00:00.000000",
            "is_disabled": False,
            "is_nsfw": False,
            "original_image_url": None,
            "original_animation_url": None,
            "traits": [
                {"trait_type": kind, "display_type": None, "max_value": None, "value": value}
                for kind, value in collection.traits.get(str(token), {}).items()
            ],
        }

    def detailed(self, chain: Chain, collection: Collection, token: int, holders: dict[str, int]) -> Item:
        """OpenSea's NftDetailed."""
        return {
            **self.nft(chain, collection, token),
            "animation_url": None,
            "is_suspicious": False,
            "creator": chain.facts.deployer,
            "owners": owned(holders),
            "rarity": None,
        }

    def collection(self, chain: Chain, collection: Collection, items: int) -> Item:
        """OpenSea's CollectionDetailedResponse."""
        return {
            "collection": collection.slug,
            "name": collection.name,
            "description": f"{collection.name} on {chain.facts.name}.",
            "image_url": f"{self._sandbox.url}/metadata/{chain.facts.name}/{collection.contract}/1/image.svg",
            "banner_image_url": "",
            "owner": chain.facts.deployer,
            "safelist_status": "verified" if collection.seeded else "not_requested",
            "category": "pfps",
            "is_disabled": False,
            "is_nsfw": False,
            "trait_offers_enabled": False,
            "collection_offers_enabled": False,
            "opensea_url": f"{self._sandbox.url}/opensea/collection/{collection.slug}",
            "project_url": "",
            "wiki_url": "",
            "discord_url": "",
            "telegram_url": "",
            "twitter_username": "",
            "instagram_username": "",
            "contracts": [{"address": collection.contract, "chain": chain.facts.opensea}],
            "editors": [],
            "fees": [],
            "required_zone": None,
            "rarity": None,
            "total_supply": items,
            "unique_item_count": items,
            "created_date": "2026-01-01",
            "pricing_currencies": {"listing_currency": {}, "offer_currency": {}},
        }

    def traits(self, collection: Collection, tokens: Owners) -> Item:
        """OpenSea's trait counts: values of texts, bounds of numbers."""
        counts: dict[str, dict[str, Any]] = {}
        for token in tokens:
            for kind, value in collection.traits.get(str(token), {}).items():
                known = counts.setdefault(kind, {})
                if isinstance(value, str):
                    known[value] = known.get(value, 0) + 1
                else:
                    known["min"] = min(value, known.get("min", value))
                    known["max"] = max(value, known.get("max", value))
        categories = {kind: "number" if {*known} == {"min", "max"} else "string" for kind, known in counts.items()}
        return {"categories": categories, "counts": counts}


def owned(holders: dict[str, int]) -> list[Item]:
    """OpenSea's owners; the int32 `quantity` is what made `quantity_string` necessary."""
    return [
        {"address": address, "quantity": min(amount, 2**31 - 1), "quantity_string": str(amount)}
        for address, amount in holders.items()
    ]


def page(items: list[Item], name: str, limit: int, cursor: str) -> Item:
    """`{name: items, next?}` from an opaque cursor. Raises ValueError for a cursor that is none of ours."""
    at = int(base64.urlsafe_b64decode(cursor.encode())) if cursor else 0
    answer: Item = {name: items[at : at + limit]}
    if at + limit < len(items):
        answer["next"] = base64.urlsafe_b64encode(str(at + limit).encode()).decode()
    return answer
