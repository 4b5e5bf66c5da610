"""Counts of who holds a collection's tokens on chain, and what they say about rules."""
