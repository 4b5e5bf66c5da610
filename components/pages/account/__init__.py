"""Signing in, the profile, one's data, and wallets with their proofs."""
