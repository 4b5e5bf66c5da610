"""What ought to be: who should have which role by the chain and the rules alone, and how that changed over time.

Nothing here knows how the product decides; it is judged by this.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Pair = tuple[str, str]
"""`(Discord id, role id)`."""


@dataclass
class Deal:
    """A rule as its admin means it: a role for whoever satisfies the tree (the API's own JSON document)."""

    role: str
    tree: dict[str, Any]
    paused: bool = False
    id: int = 0


@dataclass
class Holdings:
    """Every token's owner: `(chain, contract, token id)` → address."""

    owners: dict[tuple[str, str, str], str] = field(default_factory=dict[tuple[str, str, str], str])

    def count(self, chain: str, contract: str, address: str, ids: tuple[str, ...] = ()) -> int:
        """How many tokens of the contract (of these ids, where some are named) the address owns."""
        return sum(
            owner == address and at[:2] == (chain, contract) and (not ids or at[2] in ids)
            for at, owner in self.owners.items()
        )


def satisfied(tree: Mapping[str, Any], holdings: Holdings, wallets: Mapping[str, str]) -> bool:
    """Whether somebody with these wallets (`evm` and `solana`) satisfies the tree."""
    if "all" in tree:
        return all(satisfied(branch, holdings, wallets) for branch in tree["all"])
    if "any" in tree:
        return any(satisfied(branch, holdings, wallets) for branch in tree["any"])
    if "not" in tree:
        return not satisfied(tree["not"], holdings, wallets)
    address = wallets.get("solana" if tree["chain"] == "solana" else "evm")
    if address is None:
        return False
    held = holdings.count(tree["chain"], tree["contract"], address, tuple(tree.get("tokenIds", ())))
    return held >= int(tree["minTokens"])


@dataclass
class Timeline:
    """What was wanted when: per pair its changes, `(seconds, True, False or None)`; None is "let it be"."""

    changes: dict[Pair, list[tuple[float, bool | None]]] = field(
        default_factory=dict[Pair, list[tuple[float, bool | None]]]
    )

    def note(self, moment: float, wanted: Mapping[Pair, bool | None]) -> None:
        """From this moment on these are wanted."""
        for pair, state in wanted.items():
            past = self.changes.setdefault(pair, [])
            if not past or past[-1][1] is not state:
                past.append((moment, state))

    def states(self, pair: Pair, first: float, last: float) -> set[bool | None]:
        """Everything that was wanted for a pair between two moments."""
        past = self.changes.get(pair, [])
        ends = [moment for moment, _ in past[1:]] + [float("inf")]
        return {
            state for (begins, state), ends_at in zip(past, ends, strict=True) if begins <= last and ends_at > first
        }
