"""The table of all chains: the product's own from `chains.toml`, and those that CHAINS_FILE adds."""

from pathlib import Path

from gateways.chains.chain_file import Chain, ChainsRefused, added_chains, own_chains
from settings import chains_file


class ChainTable(dict[str, Chain]):
    """Chains by their keys, in the order in which pages list them."""

    def __missing__(self, key: str) -> Chain:
        """Return a placeholder, with a name and no nodes, for a chain that rules name but CHAINS_FILE no longer has."""
        return Chain(key, key[:1].upper() + key[1:], 0, "", "", block_seconds=12, confirmations=1, settled_after=1)


OWN = own_chains(Path(__file__).with_name("chains.toml"))
CHAINS = ChainTable(OWN)
_refused: ChainsRefused | None = None
if _path := chains_file():
    try:
        CHAINS.update(added_chains(_path, OWN))
    except ChainsRefused as fault:
        # `make doctor` has to report the fault, which it could not if the import of this module failed.
        _refused = fault


def check() -> None:
    """Raise ChainsRefused if this process was started with a CHAINS_FILE that is not valid."""
    if _refused is not None:
        raise _refused


def evm_chains() -> tuple[str, ...]:
    """Return the EVM chains in the order of the table."""
    return tuple(key for key, chain in CHAINS.items() if chain.family == "evm")


def form_order() -> tuple[str, ...]:
    """Return the order in which forms offer the chains, and in which a contract is looked for: added ones come last."""
    return tuple(sorted(CHAINS, key=lambda key: CHAINS[key].form_place or len(CHAINS) + 1))
