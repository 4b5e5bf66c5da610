"""A person's own affairs: profile, preferences, wallets and their proofs."""
