"""The kinds of staking contracts: which view function shows a wallet's stake, and what is staked at the start."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sandbox.base.people import person

PREFIX = "Staking:"


@dataclass(frozen=True)
class StakingKind:
    """One way to expose a stake: the contract, its view function, the arguments, and the path to the value."""

    contract: str
    view: str
    args: tuple[str, ...] = ("{wallet}",)
    path: str = ""


KINDS: Mapping[str, StakingKind] = {
    "number": StakingKind("StakingNumber", "staked(address) view returns (uint256)"),
    "list": StakingKind("StakingList", "stakedTokens(address) view returns (uint256[])", path="length"),
    "struct": StakingKind("StakingStruct", "positionOf(address) view returns ((uint256,uint64,bool))", path="0"),
    "constant": StakingKind(
        "StakingConstant", "stakedOf(address,uint256) view returns (uint256)", args=("{wallet}", "5")
    ),
    "revert": StakingKind("StakingRevert", "staked(address) view returns (uint256)"),
    "huge": StakingKind("StakingHuge", "stakedTokens(address) view returns (uint256[])", path="length"),
}
STANDARDS = tuple(PREFIX + kind for kind in KINDS)
_SEEDED: Mapping[int, str] = {1: "carol", 2: "carol", 3: "dave"}


@dataclass(frozen=True)
class Staking:
    """A staking contract that the world lists."""

    contract: str
    name: str
    slug: str
    kind: str
    seeded: bool = False

    @property
    def source(self) -> str:
        """The name of its contract among the artefacts."""
        return KINDS[self.kind].contract

    @property
    def stakes_at_start(self) -> dict[int, str]:
        """Token id → lower-case address of the staker at the start; empty if the contract was deployed later."""
        return {token: person(name).wallets.evm.lower() for token, name in _SEEDED.items()} if self.seeded else {}

    def entry(self, stakes: Mapping[int, str]) -> dict[str, Any]:
        """Return the entry among a chain's collections in GET /control/world: its tokens are those that are staked."""
        how = KINDS[self.kind]
        return {
            "contract": self.contract,
            "name": self.name,
            "slug": self.slug,
            "standard": PREFIX + self.kind,
            "view": how.view,
            "args": list(how.args),
            "path": how.path,
            "tokens": [{"id": str(token), "owners": {who: "1"}, "traits": {}} for token, who in sorted(stakes.items())],
        }


def deployer(chain: str) -> str:
    """Return the account that deploys the chain's staking contracts, beginning with those at the start."""
    return "0x" + sha256(f"sandbox staking deployer on {chain}".encode()).hexdigest()[:40]


def at_start(addresses: Sequence[str]) -> dict[str, Staking]:
    """Return contract → staking contract, where `addresses` has one for each kind, in order."""
    return {
        address: Staking(address, f"Staking by {kind}", f"staking-{kind}", kind, seeded=True)
        for address, kind in zip(addresses, KINDS, strict=True)
    }
