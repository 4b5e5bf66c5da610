"""What marketplaces say: what an account says about itself, what collections are called, what accounts have.

It is a hint, never proof of who holds what: what a marketplace hides or has not noticed is still held.
"""

from dataclasses import dataclass


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
