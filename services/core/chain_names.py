"""The chains as people meet them: in which order, and by which name."""

# The order in which forms offer the chains, and in which a contract is looked for.
FORM_ORDER = ("ethereum", "apechain", "polygon", "base", "abstract", "arbitrum", "optimism", "solana")


def chain_title(chain: str) -> str:
    """A chain's name with its first letter raised, nothing else."""
    return chain[:1].upper() + chain[1:]
