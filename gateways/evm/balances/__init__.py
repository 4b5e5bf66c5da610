"""Balances in bulk: many contracts and owners in one call."""
