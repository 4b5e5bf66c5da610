"""A person's profile, preferences, wallets and proofs."""
