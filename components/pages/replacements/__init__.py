"""Replacing what rules name: a contract by another contract, a role by another role."""
