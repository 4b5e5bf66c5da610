"""Solana: the node, DAS (the index of assets), memo proofs and names."""
