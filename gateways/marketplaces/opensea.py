"""OpenSea's API v2: profiles, collections, tokens, and the tokens of accounts (docs/facts.md#opensea-reads)."""

from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote

from gateways.chains.catalogue import CHAINS
from gateways.chains.indexer import ChainNotListed
from gateways.chains.metadata_traits import LONGEST_KIND, LONGEST_VALUE, NoMetadata, TraitList, read
from gateways.marketplaces.client import DEADLINE, LARGEST_ANSWER, MarketWire, all_pages
from gateways.marketplaces.quota import Quota, Use
from gateways.marketplaces.types import AccountItem, AccountItems, CollectionFacts, ContractFacts, Profile
from gateways.transport.chunks import chunks
from gateways.transport.errors import ProviderConfused, ProviderError
from gateways.transport.json_shape import Shape
from gateways.transport.plain_text import plain

OPENSEA = "OpenSea"
LONGEST_NAME = 200
LARGEST_LIST = 16_000_000
"""Most bytes of one page of tokens or of one collection's traits; descriptions and values may have any length."""
TOKENS_A_BATCH = 30
"""Tokens in one batch; OpenSea documents no limit (docs/facts.md#opensea-reads)."""
ITEMS_A_PAGE = 200
MOST_PAGES = 50


class OpenSea:
    """OpenSea's profiles, collections and tokens. Every failed read raises a ProviderError; `quota` limits the reads.

    OpenSea requires a key: without one, every request raises Unauthorized.
    """

    def __init__(self, api_url: str, site_url: str, api_key: str | None, *, deadline: float = DEADLINE) -> None:
        self._api, self._site = f"{api_url.rstrip('/')}/api/v2", site_url.rstrip("/")
        self.quota = Quota(OPENSEA)
        headers = {"x-api-key": api_key} if api_key else {}
        self._wire = MarketWire(OPENSEA, headers, deadline=deadline, quota=self.quota)

    async def close(self) -> None:
        """Close the connections."""
        await self._wire.close()

    def profile_url(self, address: str) -> str:
        """Return the profile's page for people: `https://opensea.io/<address>` (docs/facts.md#opensea-pages)."""
        return f"{self._site}/{quote(address, safe='')}"

    async def profile(self, address: str, *, use: Use = Use.PROOF) -> Profile:
        """Return the current profile. Raises NotThere when OpenSea has none, another ProviderError when it is unknown.

        GET /accounts/{address}: `address` and `bio` are required fields of the answer (docs/facts.md#opensea-reads).
        """
        account = await self._read(f"accounts/{quote(address, safe='')}", "account", use=use)
        found = account.text("address")
        if not found:
            raise ProviderConfused(OPENSEA, "the account has no address")
        return Profile(
            address=_lowered(found), username=account.text_or_none("username") or None, bio=account.text("bio")
        )

    async def collection(self, slug: str) -> CollectionFacts:
        """Return the collection with this slug. Raises NotThere when there is none.

        GET /collections/{slug}; a collection may have several contracts, even on several chains
        (docs/facts.md#opensea-reads).
        """
        found = await self._read(f"collections/{quote(slug, safe='')}", "collection", use=Use.LOOKUP)
        contracts = [Shape(item, "a contract", OPENSEA) for item in found.items("contracts")]
        return CollectionFacts(
            slug=found.text("collection"),
            name=plain(found.text("name"), LONGEST_NAME),
            contracts=tuple((_our_chain(one.text("chain")), _lowered(one.text("address"))) for one in contracts),
        )

    async def contract(self, chain: str, address: str) -> ContractFacts:
        """Return the contract on one of our chains. Raises NotThere when OpenSea does not know it.

        GET /chain/{chain}/contract/{address}: all fields are required (docs/facts.md#opensea-reads).
        """
        found = await self._read(_contract(chain, address), "contract", use=Use.LOOKUP)
        if _lowered(found.text("address")) != _lowered(address):
            raise ProviderConfused(OPENSEA, "the answer is about another contract")
        return ContractFacts(slug=found.text("collection"), name=plain(found.text("name"), LONGEST_NAME))

    async def traits(self, slug: str) -> Mapping[str, tuple[str, ...]]:
        """Return each trait of a collection with its values. Raises NotThere when there is no such collection.

        GET /traits/{slug}: text traits come with their values and the number of tokens for each. Numeric traits come
        only with their bounds, so their values here are empty.
        """
        found = await self._read(f"traits/{quote(slug, safe='')}", "collection", LARGEST_LIST, use=Use.LOOKUP)
        kinds, counts = found.inner("categories"), found.inner("counts")
        listed: dict[str, tuple[str, ...]] = {}
        for name in kinds.names():
            values = counts.inner(name).names() if kinds.text(name) == "string" else ()
            shown = dict.fromkeys(plain(value, LONGEST_VALUE) for value in values)
            listed[plain(name, LONGEST_KIND)] = tuple(value for value in shown if value)
        return {kind: values for kind, values in listed.items() if kind}

    async def nft(self, chain: str, contract: str, token_id: str) -> TraitList:
        """Return one token's traits. Raises NotThere when OpenSea does not know the token.

        They are also empty while OpenSea has not read the metadata.
        GET /chain/{chain}/contract/{address}/nfts/{identifier}.
        """
        path = f"{_contract(chain, contract)}/nfts/{quote(token_id, safe='')}"
        found = (await self._read(path, "token", LARGEST_LIST)).inner("nft")
        if (_lowered(found.text("contract")), found.text("identifier")) != (_lowered(contract), token_id):
            raise ProviderConfused(OPENSEA, "the answer is about another token")
        return _traits(found)

    async def nfts(
        self, chain: str, tokens: Sequence[tuple[str, str]]
    ) -> Mapping[tuple[str, str], TraitList | ProviderError]:
        """Return the traits of many tokens `(contract, token id)` of one chain, without tokens unknown to OpenSea.

        A token whose traits cannot be read has the error instead; anybody may have made it.
        POST /nfts/batch, 30 tokens at a time (docs/facts.md#opensea-reads).
        """
        asked = list(dict.fromkeys(tokens))
        found: dict[tuple[str, str], TraitList | ProviderError] = {}
        for some in chunks(asked, TOKENS_A_BATCH):
            part = {(_lowered(contract), token_id): (contract, token_id) for contract, token_id in some}
            body = {
                "identifiers": [
                    {"chain": _name_of(chain), "contract_address": contract, "token_id": token_id}
                    for contract, token_id in part
                ]
            }
            said = await self._wire.read(f"{self._api}/nfts/batch", "batch", body=body, largest=LARGEST_LIST)
            for item in Shape(said, "the batch", OPENSEA).items("nfts"):
                one = Shape(item, "a token", OPENSEA)
                place = part.get((_lowered(one.text("contract")), one.text("identifier")))
                if place is not None:
                    found[place] = _traits_or_why(one)
        return found

    async def account_nfts(self, chain: str, address: str) -> AccountItems:
        """Return everything that is listed for an address on a chain: all pages, or a ProviderError.

        GET /chain/{chain}/account/{address}/nfts, in pages of 200 until there is no `next`
        (docs/facts.md#opensea-reads). Raises ProviderConfused for an account with more than 10,000 tokens and for pages
        that repeat.
        """
        path = f"chain/{_name_of(chain)}/account/{quote(address, safe='')}/nfts?limit={ITEMS_A_PAGE}"

        async def page(cursor: str) -> tuple[Iterable[AccountItem], str | None]:
            following = f"&next={quote(cursor, safe='')}" if cursor else ""
            said = await self._read(f"{path}{following}", "account", LARGEST_LIST)
            tokens = [Shape(item, "a token", OPENSEA) for item in said.items("nfts")]
            items = [AccountItem(_lowered(one.text("contract")), one.text("identifier")) for one in tokens]
            return items, said.text_or_none("next")

        return AccountItems(chain, address, OPENSEA, await all_pages(OPENSEA, page, MOST_PAGES, ITEMS_A_PAGE))

    async def _read(self, path: str, what: str, largest: int = LARGEST_ANSWER, use: Use = Use.RULES) -> Shape:
        """Return the object at a path."""
        said = await self._wire.read(f"{self._api}/{path}", what, largest=largest, use=use)
        return Shape(said, f"the {what}", OPENSEA)


def _traits(token: Shape) -> TraitList:
    """Return a token's traits. OpenSea sends a list even while it has not read the metadata."""
    try:
        return read(token.items("traits"))
    except NoMetadata as fault:
        raise ProviderConfused(OPENSEA, str(fault)) from None


def _traits_or_why(token: Shape) -> TraitList | ProviderError:
    try:
        return _traits(token)
    except ProviderConfused as fault:
        return fault


def _contract(chain: str, address: str) -> str:
    return f"chain/{_name_of(chain)}/contract/{quote(address, safe='')}"


def _name_of(chain: str) -> str:
    """Return OpenSea's name of a chain. Raises ChainNotListed for one that OpenSea does not have."""
    name = CHAINS[chain].opensea
    if name is None:
        raise ChainNotListed(OPENSEA, CHAINS[chain].title)
    return name


def _lowered(address: str) -> str:
    """Return a hexadecimal address in lower case, any other unchanged (case matters on Solana)."""
    return address.lower() if address[:2].lower() == "0x" else address


def _our_chain(name: str) -> str:
    return next((key for key, chain in CHAINS.items() if chain.opensea == name), name)
