"""The fixed facts about each EVM chain, as in `chains.toml`, and the addresses of contracts and keepers."""

import os
import re
import tomllib
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

MULTICALL3 = "0xca11bde05977b3631167028862be2a173976ca11"
REGISTRY = "0x00000000000000447e69651d841bd8d104bed493"
GREATEST_ID = 2**63 - 1
_NAME, _NUMBER = re.compile(r"[a-z][a-z0-9]{1,19}"), re.compile(r"[1-9][0-9]{0,18}")
# The account that deploys the contract accounts: at the start a Safe and an ERC-4337 account. Like a real factory it
# has one address on all chains, so the third account of one chain has the same address as the third of another.
ACCOUNT_DEPLOYER = "0x" + sha256(b"sandbox account deployer").hexdigest()[:40]
# The account that may set ownership in bulk, for seeds and resets. Nobody has a key for it; the node impersonates it.
KEEPER = "0x" + sha256(b"sandbox keeper").hexdigest()[:40]


Seed = tuple[str, str, str]
"""Name, symbol and slug of a collection. Each chain has an ERC-721, an enumerable ERC-721 and an ERC-1155."""


@dataclass(frozen=True)
class Network:
    """One chain as OpenSea shows it; `native` is the address that stands for its coin."""

    name: str
    symbol: str
    coin: str
    explorer: str
    explorer_url: str
    eth_price: str = "1"
    usd_price: str = "3000"
    decimals: int = 18
    native: str = "0x0000000000000000000000000000000000000000"


@dataclass(frozen=True)
class Facts:
    """The fixed facts about one chain.

    `block_seconds` is the age at which a head starts to look old. `confirmations` is how many blocks follow a control
    call. `opensea` and `alchemy` are the chain's names at these providers. `names` says that the chain has ENS,
    `zksync` that receipts have the additional fields of ZKsync's nodes.
    """

    name: str
    chain_id: int
    block_seconds: float
    confirmations: int
    opensea: str
    alchemy: str
    network: Network
    collections: tuple[Seed, ...]
    multicall3: str | None = MULTICALL3
    registry: str = REGISTRY
    names: bool = False
    zksync: bool = False

    @property
    def deployer(self) -> str:
        """The account whose first three contracts are the chain's collections."""
        return "0x" + sha256(f"sandbox deployer on {self.name}".encode()).hexdigest()[:40]


def _own() -> dict[str, Facts]:
    table = tomllib.loads(Path(__file__).with_name("chains.toml").read_text())
    return {
        name: Facts(
            name,
            **entry
            | {
                "multicall3": entry.get("multicall3", MULTICALL3) or None,
                "network": Network(**entry["network"]),
                "collections": tuple(map(tuple, entry["collections"])),
            },
        )
        for name, entry in table.items()
    }


OWN = _own()


class ChainsRefused(ValueError):
    """SANDBOX_EXTRA_CHAINS cannot be read; the text is a sentence about the entry."""


def extra_chains(text: str) -> dict[str, Facts]:
    """Return the chains that a text such as `ninth:424242,tenth:7` adds. Raises ChainsRefused for any other text."""
    found: dict[str, Facts] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, number = entry.partition(":")
        if not _NAME.fullmatch(name) or not _NUMBER.fullmatch(number) or int(number) > GREATEST_ID:
            raise ChainsRefused(f"SANDBOX_EXTRA_CHAINS: {entry!r} is not a name and a chain id, as in ninth:424242.")
        taken = [*OWN.values(), *found.values()]
        if name == "solana" or any(name == other.name or int(number) == other.chain_id for other in taken):
            raise ChainsRefused(f"SANDBOX_EXTRA_CHAINS: {entry!r} is another chain's name or id.")
        network = Network(name.capitalize(), "ETH", "Ether", "Explorer", f"https://explorer.{name}.example")
        found[name] = Facts(name, int(number), 4, 4, name, f"{name}-mainnet", network, _collections(name))
    return found


def _collections(name: str) -> tuple[Seed, ...]:
    """Return names for the collections of an extra chain; no other chain uses them."""
    title, symbol = name.capitalize(), name[:4].upper()
    return tuple(
        (f"{title} {kind}", f"{symbol}{letter}", f"{name}-{kind.lower()}")
        for kind, letter in (("Owls", "O"), ("Lamps", "L"), ("Stamps", "S"))
    )


CHAINS = dict(OWN)
_refused: ChainsRefused | None = None
try:
    CHAINS |= extra_chains(os.environ.get("SANDBOX_EXTRA_CHAINS", ""))
except ChainsRefused as fault:
    # `check` raises this at the start, where it can be printed; an exception during import could not be.
    _refused = fault


def check() -> None:
    """Raise ChainsRefused if this process was started with a SANDBOX_EXTRA_CHAINS that cannot be read."""
    if _refused is not None:
        raise _refused
