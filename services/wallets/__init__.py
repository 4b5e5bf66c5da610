"""Wallets: challenges, proofs by bio or transaction, watching chains for a proof, and who owns which."""
