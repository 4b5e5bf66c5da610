"""Marketplaces: what an account says about itself, what collections are called, which traits they list.

It is a hint, never proof of who holds what: what a marketplace hides or has not noticed is still held.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gateways.chains.attributes import TraitList
from gateways.marketplaces.quota import Quota, Use


@dataclass(frozen=True, slots=True)
class Profile:
    """An account as its marketplace shows it; `address` is the one the answer names, lower-case when hexadecimal.

    The caller compares it with the address it asked about: an account may stand for several wallets
    (docs/facts.md#opensea-several-wallets).
    """

    address: str
    username: str | None
    bio: str


@dataclass(frozen=True, slots=True)
class CollectionFacts:
    """A collection as its marketplace shows it: `contracts` are `(chain, address)`, the chain by our key if it is ours.

    `name` is one line of printable text of at most 200 characters; empty when there is none.
    """

    slug: str
    name: str
    contracts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ContractFacts:
    """A contract as the marketplace knows it, and the slug of its collection."""

    slug: str
    name: str


@dataclass(frozen=True, slots=True)
class AccountItem:
    """A token that the marketplace lists for an account; the account has at least `amount` of it."""

    contract: str
    token_id: str
    amount: int = 1


@dataclass(frozen=True, slots=True)
class AccountItems:
    """Everything that the marketplace lists for an address on one chain, to the last page.

    Never proof of nothing: hidden tokens are not listed (docs/facts.md#opensea-hidden-tokens), and listing lags behind
    the chain.
    """

    chain: str
    address: str
    source: str
    items: tuple[AccountItem, ...]


class Marketplace(Protocol):
    """A marketplace whose profiles, collections and tokens we read. What cannot be read is a ProviderError.

    `quota` is what may be asked.
    """

    quota: Quota

    async def profile(self, address: str, *, use: Use = Use.PROOF) -> Profile:
        """The profile now; NotThere when the marketplace knows none, another ProviderError when it cannot tell."""
        ...

    def profile_url(self, address: str) -> str:
        """The profile's page for people."""
        ...

    async def collection(self, slug: str) -> CollectionFacts:
        """The collection with this slug; NotThere when there is none."""
        ...

    async def contract(self, chain: str, address: str) -> ContractFacts:
        """The contract on one of our chains; NotThere when the marketplace does not know it."""
        ...

    async def traits(self, slug: str) -> Mapping[str, tuple[str, ...]]:
        """Each trait of a collection with its values; NotThere when there is no such collection."""
        ...

    async def nft(self, chain: str, contract: str, token_id: str) -> TraitList:
        """One token's traits; NotThere when the marketplace does not know the token."""
        ...

    async def nfts(self, chain: str, tokens: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], TraitList]:
        """The traits of many tokens `(contract, token id)` of one chain; what is not known there is left out."""
        ...

    async def account_nfts(self, chain: str, address: str) -> AccountItems:
        """Everything that is listed for an address on a chain: all pages, or a ProviderError."""
        ...
