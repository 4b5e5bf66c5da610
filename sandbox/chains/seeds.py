"""What each chain has at the start: the tokens of its collections with their owners and traits, and its coins."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Protocol, TypeVar

from eth_hash.auto import keccak

from sandbox.base.chain_table import ACCOUNT_DEPLOYER, Facts
from sandbox.base.people import person
from sandbox.contracts.accounts import ACCOUNT, SAFE, SmartAccount

STANDARDS = ("ERC721", "ERC721Enumerable", "ERC1155")
PUNKS = "Punks"
"""The standard of collections from before the token standards. No chain has one at the start."""

# position of the collection → token id → owner → amount
HOLDINGS: tuple[dict[int, dict[str, int]], ...] = (
    {
        1: {"carol": 1},
        2: {"carol": 1},
        3: {"carol": 1},
        4: {"dave": 1},
        5: {"dave": 1},
        6: {"erin": 1},
        7: {"bob": 1},
        8: {"erin": 1},
    },
    {1: {"dave": 1}, 2: {"dave": 1}, 3: {"dave": 1}, 4: {"carol": 1}, 5: {"erin": 1}, 6: {"bob": 1}},
    {1: {"carol": 5, "dave": 2}, 2: {"erin": 10, "bob": 1}, 3: {"bob": 4, "carol": 1}},
)
TRAITS = {
    "Background": ("Dawn", "Moss", "Slate", "Saffron"),
    "Mood": ("Calm", "Curious", "Stubborn"),
    "Hat": ("None", "Beanie", "Crown", "Straw"),
}
# name, symbol, slug, decimals, whether it rebases, whole coins by owner
COINS: tuple[tuple[str, str, str, int, bool, dict[str, int]], ...] = (
    ("Harbour Dollar", "HUSD", "harbour-dollar", 6, False, {"carol": 1_000, "dave": 250, "erin": 20}),
    ("Orchard Coin", "ORCH", "orchard-coin", 18, False, {"carol": 40, "bob": 5, "erin": 1_200}),
    ("Tidal Ether", "TIDE", "tidal-ether", 18, True, {"dave": 32, "erin": 8}),
)


@dataclass
class Collection:
    """A collection that the world lists. `traits`: token id → trait type → value."""

    contract: str
    name: str
    slug: str
    standard: str
    seeded: bool = False
    traits: dict[str, dict[str, str | int | float]] = field(default_factory=dict)

    def entry(self, owners: Mapping[int, Mapping[str, int]] | Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
        """Return the entry among a chain's collections in GET /control/world; `owners` is token id → owner → amount."""
        return {
            "contract": self.contract,
            "name": self.name,
            "slug": self.slug,
            "standard": self.standard,
            "tokens": [
                {
                    "id": str(token),
                    "owners": {owner: str(amount) for owner, amount in holders.items()},
                    "traits": self.traits.get(str(token), {}),
                }
                for token, holders in owners.items()
            ],
        }


class Listed(Protocol):
    """What the world lists by an address, a slug and a name, and a coin by its symbol too."""

    @property
    def contract(self) -> str: ...
    @property
    def slug(self) -> str: ...
    @property
    def name(self) -> str: ...


L = TypeVar("L", bound=Listed)


def called(listed: Iterable[L], wanted: str) -> L | None:
    """Return the first with this address, slug, symbol or name; only addresses of Solana have one letter case."""
    for one in listed:
        names = (one.slug, one.name.lower(), getattr(one, "symbol", "").lower())
        if wanted == one.contract or wanted.lower() in (one.contract, *filter(None, names)):
            return one
    return None


def seeded_addresses(facts: Facts) -> list[str]:
    """Return the addresses of the deployer's first contracts, in the order of the standards."""
    return [created(facts.deployer, nonce) for nonce in range(len(STANDARDS))]


def seeded_collections(facts: Facts) -> dict[str, Collection]:
    """Return contract → collection, as on a fresh chain."""
    listed: dict[str, Collection] = {}
    for position, (address, standard) in enumerate(zip(seeded_addresses(facts), STANDARDS, strict=True)):
        name, _, slug = facts.collections[position]
        listed[address] = Collection(address, name, slug, standard, True, seeded_traits(slug, position))
    return listed


def seeded_traits(slug: str, position: int) -> dict[str, dict[str, str | int | float]]:
    """Return the traits that a seeded collection starts with, the same in every world."""
    return {
        str(token): {kind: _pick(f"{slug} {token} {kind}", values) for kind, values in TRAITS.items()}
        for token in HOLDINGS[position]
    }


def seeded_owners(position: int) -> dict[int, dict[str, int]]:
    """Return token id → lower-case address → amount at the start."""
    return {
        token: {person(name).wallets.evm.lower(): amount for name, amount in holders.items()}
        for token, holders in HOLDINGS[position].items()
    }


ACCOUNT_OWNERS = {SAFE: "carol", ACCOUNT: "dave"}
"""Standard → owner of the contract accounts that every chain has at the start, in the order of their deployment."""


def seeded_accounts() -> dict[str, SmartAccount]:
    """Return address → contract account, as on every fresh chain."""
    listed: dict[str, SmartAccount] = {}
    for nonce, (standard, owner) in enumerate(ACCOUNT_OWNERS.items()):
        address = created(ACCOUNT_DEPLOYER, nonce)
        listed[address] = SmartAccount(address, standard, person(owner).wallets.evm.lower(), seeded=True)
    return listed


def _pick(key: str, values: tuple[str, ...]) -> str:
    return values[sha256(key.encode()).digest()[0] % len(values)]


def created(sender: str, nonce: int) -> str:
    """Return the address of the contract that `sender` creates with a nonce below 128: Keccak over the RLP of both."""
    rlp = bytes([0xC0 + 22, 0x80 + 20]) + bytes.fromhex(sender[2:]) + bytes([nonce or 0x80])
    return "0x" + keccak(rlp)[12:].hex()
