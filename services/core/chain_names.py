"""The names of chains for people, and the order in which they are shown."""

from gateways.chains.catalogue import CHAINS, OWN, evm_chains, form_order

__all__ = ["chain_title", "evm_titles", "form_order"]


def chain_title(chain: str) -> str:
    """Return a chain's name in rules and forms: its key with a capital first letter, or its title in CHAINS_FILE."""
    if chain in CHAINS and chain not in OWN:
        return CHAINS[chain].title
    return chain[:1].upper() + chain[1:]


def evm_titles() -> tuple[str, ...]:
    """Return the names of the EVM chains as pages for everybody list them."""
    return tuple(CHAINS[chain].title for chain in evm_chains())
