"""What is fixed about each EVM chain: ids, paces, names elsewhere, and the addresses of shared contracts."""

from dataclasses import dataclass
from hashlib import sha256

MULTICALL3 = "0xca11bde05977b3631167028862be2a173976ca11"
REGISTRY = "0x00000000000000447e69651d841bd8d104bed493"
REGISTRY_ON_ABSTRACT = "0x0000000059a24eb229eed07ac44229db56c5d797"
# Who may settle ownership in bulk: seeds and resets. Nobody has a key for it; the node impersonates it.
KEEPER = "0x" + sha256(b"sandbox keeper").hexdigest()[:40]


@dataclass(frozen=True)
class Facts:
    """One chain. `block_seconds` is when a head starts to look old; `confirmations` is how many blocks follow a
    control call; `names` says that ENS is there."""

    name: str
    chain_id: int
    block_seconds: float
    confirmations: int
    opensea: str
    multicall3: str | None = MULTICALL3
    registry: str = REGISTRY
    names: bool = False

    @property
    def deployer(self) -> str:
        """The account whose first three contracts are the chain's collections."""
        return "0x" + sha256(f"sandbox deployer on {self.name}".encode()).hexdigest()[:40]


CHAINS = {
    facts.name: facts
    for facts in (
        Facts("ethereum", 1, 12, 12, "ethereum", names=True),
        Facts("polygon", 137, 5, 64, "polygon"),
        Facts("arbitrum", 42161, 4, 4, "arbitrum"),
        Facts("optimism", 10, 4, 4, "optimism"),
        Facts("base", 8453, 4, 4, "base"),
        Facts("apechain", 33139, 4, 4, "ape_chain"),
        Facts("abstract", 2741, 4, 4, "abstract", None, REGISTRY_ON_ABSTRACT),
    )
}
