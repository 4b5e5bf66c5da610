"""Wallets: challenges, proofs by bio or transaction, watching chains for proofs, and ownership."""
