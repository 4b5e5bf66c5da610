"""The names of the chains, for the pages that list them."""

from locales import listed
from services.core.chain_names import evm_titles

__all__ = ["chain_list", "evm_titles"]


def chain_list() -> str:
    """Return the EVM chains as a list within a sentence: `a, b and c`."""
    return listed(evm_titles())
