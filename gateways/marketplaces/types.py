"""Data from marketplaces: profiles of accounts, names of collections, and the tokens listed for accounts.

Listed tokens are hints, never proof of who holds what: an account still holds a token that a marketplace hides or has
not noticed.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Profile:
    """An account as its marketplace shows it; `address` is the one in the answer, in lower case when hexadecimal.

    The caller compares it with the requested address, because an account may have several wallets
    (docs/facts.md#opensea-several-wallets).
    """

    address: str
    username: str | None
    bio: str


@dataclass(frozen=True, slots=True)
class CollectionFacts:
    """A collection as its marketplace shows it.

    `contracts` are `(chain, address)`; the chain is our key for it if we support it, else the marketplace's name.
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
    """Everything that the marketplace lists for an address on one chain, up to the last page.

    It never proves that an account lacks a token: hidden tokens are not listed (docs/facts.md#opensea-hidden-tokens),
    and the list lags behind the chain.
    """

    chain: str
    address: str
    source: str
    items: tuple[AccountItem, ...]
