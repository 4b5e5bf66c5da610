"""The truth: who should have which role by the chain and the rules alone, and how that changed over time.

This module does not know how the product decides; the product is judged by it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

Pair = tuple[str, str]
"""`(Discord id, role id)`."""


@dataclass
class SoakRule:
    """A rule as its admin means it: a role for everybody who satisfies the tree (the API's own JSON document)."""

    role: str
    tree: dict[str, Any]
    paused: bool = False
    id: int = 0


Token = tuple[str, str, str]
"""`(chain, contract, token id)`."""


@dataclass
class Holdings:
    """Everybody's holdings: `owners` of tokens and their `traits`, `amounts` of coins in base units, `stakes`."""

    owners: dict[Token, str] = field(default_factory=dict[Token, str])
    traits: dict[Token, dict[str, str]] = field(default_factory=dict[Token, dict[str, str]])
    """Only tokens that have traits."""
    amounts: dict[Token, int] = field(default_factory=dict[Token, int])
    """`(chain, contract, address)` → base units; zeros are left out."""
    decimals: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    stakes: dict[Token, str] = field(default_factory=dict[Token, str])
    """A staked token of a staking contract → the address that staked it."""

    def of(self, chain: str, address: str) -> list[Token]:
        """Return everything that the address owns on the chain."""
        return [at for at, owner in self.owners.items() if owner == address and at[0] == chain]

    def amount(self, chain: str, contract: str, address: str) -> int:
        """Return the address's amount of a coin, in base units."""
        return self.amounts.get((chain, contract, address), 0)

    def staked(self, chain: str, contract: str, address: str) -> int:
        """Return how many tokens the address has staked."""
        return sum(who == address and at[:2] == (chain, contract) for at, who in self.stakes.items())


def right(tree: Mapping[str, Any], holdings: Holdings, wallets: Mapping[str, str]) -> bool:
    """Return whether a person with these wallets (`evm` and `solana`) should have the role; without wallets, never."""
    return bool(wallets) and satisfied(tree, holdings, wallets)


def satisfied(tree: Mapping[str, Any], holdings: Holdings, wallets: Mapping[str, str]) -> bool:
    """Return whether a person with these wallets satisfies the tree."""
    if "all" in tree:
        return all(satisfied(branch, holdings, wallets) for branch in tree["all"])
    if "any" in tree:
        return any(satisfied(branch, holdings, wallets) for branch in tree["any"])
    if "not" in tree:
        return not satisfied(tree["not"], holdings, wallets)
    if tree["type"] == "address_list":
        return not set(tree["addresses"]).isdisjoint(wallets.values())
    if tree["type"] == "any_wallet":
        return tree["family"] in wallets if "family" in tree else bool(wallets)
    chain, contract = tree["chain"], tree["contract"]
    address = wallets.get("solana" if chain == "solana" else "evm")
    if address is None:
        return False
    if tree["type"] == "call":
        return holdings.staked(chain, contract, address) >= int(tree["value"])
    if tree["type"] == "token":
        whole = Fraction(holdings.amount(chain, contract, address), 10 ** holdings.decimals[chain, contract])
        return Fraction(tree.get("min", 0)) <= whole and ("max" not in tree or whole <= Fraction(tree["max"]))
    fitting = sum(_fits(tree, at, holdings) for at in holdings.of(chain, address))
    return int(tree.get("minTokens", 1)) <= fitting and fitting <= tree.get("maxTokens", fitting)


def _fits(tree: Mapping[str, Any], at: Token, holdings: Holdings) -> bool:
    """Return whether a token counts for a condition about tokens."""
    if tree["type"] == "any_nft":
        return True
    if at[1] != tree["contract"]:
        return False
    if tree["type"] == "token_id":
        bounds = [entry.partition("-") for entry in tree["tokenIds"]]
        return any(int(first) <= int(at[2]) <= int(last or first) for first, _, last in bounds)
    if tree["type"] == "trait":
        return holdings.traits.get(at, {}).get(tree["trait"]["type"]) == tree["trait"]["value"]
    assert tree["type"] == "basic", f"nothing here knows {tree['type']}"
    return True


@dataclass
class Timeline:
    """The wanted roles over time: by pair its changes, `(seconds, True, False or None)`. None means "leave alone"."""

    changes: dict[Pair, list[tuple[float, bool | None]]] = field(
        default_factory=dict[Pair, list[tuple[float, bool | None]]]
    )

    def note(self, moment: float, wanted: Mapping[Pair, bool | None]) -> None:
        """Record that these are wanted from this moment on."""
        for pair, state in wanted.items():
            past = self.changes.setdefault(pair, [])
            if not past or past[-1][1] is not state:
                past.append((moment, state))

    def states(self, pair: Pair, first: float, last: float) -> set[bool | None]:
        """Return all values that were wanted for a pair between two moments."""
        past = self.changes.get(pair, [])
        ends = [moment for moment, _ in past[1:]] + [float("inf")]
        return {
            state for (begins, state), ends_at in zip(past, ends, strict=True) if begins <= last and ends_at > first
        }
