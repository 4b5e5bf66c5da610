"""Login, profile, personal data, and wallets with their proofs."""
