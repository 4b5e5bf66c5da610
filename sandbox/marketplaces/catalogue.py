"""What the marketplaces see of the chains: collections by address and by slug, tokens, and their holders."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from sandbox.base.body import is_whole
from sandbox.base.chain_table import CHAINS
from sandbox.base.sandbox import Sandbox
from sandbox.chains import Chains
from sandbox.chains.seeds import Collection
from sandbox.solana import Solana

SOLANA = "solana"
# The creator of the collections on a chain that has no deployer of its own.
NOBODY_SPECIAL = "11111111111111111111111111111111"
TokenId = int | str
"""A number on an EVM chain, a mint address on Solana."""
Owners = Mapping[TokenId, Mapping[str, int]]


class ListedChain(Protocol):
    """What a marketplace needs of a chain."""

    @property
    def collections(self) -> Mapping[str, Collection]: ...
    def collections_at(self, block: int | None = None, /) -> Mapping[str, Collection]: ...
    async def owners(self, block: int | None = None, /) -> Mapping[str, Any]: ...
    def head_at(self, moment: float) -> int: ...


@dataclass(frozen=True)
class Market:
    """One chain by our name and by OpenSea's, now or as of a block; `deployer` made its collections."""

    name: str
    opensea: str
    deployer: str
    chain: ListedChain
    block: int | None

    @cached_property
    def collections(self) -> Mapping[str, Collection]:
        """Contract → collection."""
        return self.chain.collections if self.block is None else self.chain.collections_at(self.block)

    async def owners(self) -> Mapping[str, Owners]:
        """Return contract → owners."""
        return await self.chain.owners(self.block)

    def contract(self, text: str) -> Collection | None:
        """Return the collection at an address; letter case matters on Solana alone."""
        return self.collections.get(text if self.name == SOLANA else text.lower())

    def token(self, text: str) -> TokenId | None:
        """Return a token's id in the chain's form; None where it has no such form."""
        if self.name == SOLANA:
            return text
        return int(text) if is_whole(text) else None

    def address(self, text: str) -> str:
        """Return an account's address in the chain's form."""
        return text if self.name == SOLANA else text.lower()


@dataclass(frozen=True)
class Token:
    """One token of a collection, with its holders and their amounts."""

    market: Market
    collection: Collection
    id: TokenId
    holders: Mapping[str, int]

    @property
    def name(self) -> str:
        """The collection's name and the token's number, or the first letters of its address."""
        return f"{self.collection.name} #{str(self.id)[:6] if self.market.name == SOLANA else self.id}"

    @property
    def traits(self) -> Mapping[str, str | int | float]:
        """Trait type → value."""
        return self.collection.traits.get(str(self.id), {})


class Catalogue:
    """Collections and tokens of all running chains. `since` is the moment at which a stale indexer stopped, or None."""

    def __init__(self, sandbox: Sandbox, chains: Chains | None, solana: Solana | None) -> None:
        self._sandbox, self._chains, self._solana = sandbox, chains, solana

    @property
    def url(self) -> str:
        """The address of the sandbox."""
        return self._sandbox.url

    def markets(self, since: float | None = None) -> dict[str, Market]:
        """Return the chains by our names; empty where the sandbox runs without them."""
        by_name: Mapping[str, ListedChain] = self._chains.by_name if self._chains else {}
        found = {
            name: Market(name, CHAINS[name].opensea, CHAINS[name].deployer, chain, _block(chain, since))
            for name, chain in by_name.items()
        }
        if self._solana is not None:
            block = _block(self._solana, since)
            found[SOLANA] = Market(SOLANA, SOLANA, NOBODY_SPECIAL, self._solana, block)
        return found

    def market(self, name: str, since: float | None = None) -> Market | None:
        """Return the chain with this name, OpenSea's or ours, or None."""
        return next((one for one in self.markets(since).values() if name in (one.opensea, one.name)), None)

    def by_slug(self, slug: str, since: float | None = None) -> list[tuple[Market, Collection]]:
        """Return the contracts of the collection with this slug; slugs are one name space over all chains."""
        return [
            (market, collection)
            for market in self.markets(since).values()
            for collection in market.collections.values()
            if collection.slug == slug
        ]

    async def tokens(self, market: Market, collection: Collection) -> list[Token]:
        """Return every token of a collection that somebody has."""
        owners = (await market.owners()).get(collection.contract, {})
        return [Token(market, collection, token, holders) for token, holders in owners.items() if holders]

    async def token(self, market: Market, collection: Collection, token_id: str) -> Token | None:
        """Return one token, if somebody has it."""
        found = await self.chosen(market, [(collection.contract, token_id)])
        return found[0] if found else None

    async def chosen(self, market: Market, wanted: Iterable[tuple[str, str]]) -> list[Token]:
        """Return the tokens with these contracts and ids, except those that nobody has."""
        owners = await market.owners()
        found: list[Token] = []
        for contract, token_id in wanted:
            collection, token = market.contract(contract), market.token(token_id)
            if collection is None or token is None:
                continue
            if holders := owners.get(collection.contract, {}).get(token):
                found.append(Token(market, collection, token, holders))
        return found

    async def of_account(self, market: Market, address: str) -> list[Token]:
        """Return everything that an address has on a chain."""
        return [
            Token(market, market.collections[contract], token, holders)
            for contract, tokens in (await market.owners()).items()
            if contract in market.collections
            for token, holders in tokens.items()
            if address in holders
        ]


def _block(chain: ListedChain, since: float | None) -> int | None:
    return None if since is None else chain.head_at(since)
