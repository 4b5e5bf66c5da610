"""The names of chains for people, and the order in which they are shown."""

from gateways.chains.catalogue import CHAINS, OWN, evm_chains, form_order

__all__ = ["capitalised", "chain_title", "evm_titles", "form_order"]


def chain_title(chain: str) -> str:
    """Return a chain's name as people write it; for an unknown chain its key with a capital first letter."""
    return CHAINS[chain].title if chain in CHAINS else chain[:1].upper() + chain[1:]


def capitalised(chain: str) -> str:
    """Return a chain's name in the automatic names of rules: its key with a capital first letter.

    A chain of CHAINS_FILE has its title there.
    """
    return chain[:1].upper() + chain[1:] if chain in OWN else chain_title(chain)


def evm_titles() -> tuple[str, ...]:
    """Return the names of the EVM chains as pages for everybody list them."""
    return tuple(CHAINS[chain].title for chain in evm_chains())
