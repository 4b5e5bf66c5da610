"""The names of the chains, for the pages that list them."""

from services.core.chain_names import evm_titles

__all__ = ["chain_list", "evm_titles"]


def chain_list() -> str:
    """Return the EVM chains as they stand in a sentence: by commas, the last one by `and`."""
    *first, last = evm_titles()
    return f"{', '.join(first)} and {last}"
