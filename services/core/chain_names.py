"""The names of chains for people, and the order in which they are shown."""

# The order in which forms offer the chains, and in which we search them for a contract.
FORM_ORDER = ("ethereum", "apechain", "polygon", "base", "abstract", "arbitrum", "optimism", "solana")


def chain_title(chain: str) -> str:
    """Return a chain's name with a capital first letter."""
    return chain[:1].upper() + chain[1:]
