"""The names of the chains, for the pages that list them."""

from services.core.chain_names import evm_titles

__all__ = ["evm_titles"]
