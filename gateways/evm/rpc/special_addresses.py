"""Addresses that mean the same on every EVM chain."""

UNUSED = "0x" + 18 * "f1" + "5afe"
"""Nobody has ever used this address, neither as an account nor as a contract."""
SHA256 = "0x" + 19 * "00" + "02"
"""A contract of the EVM itself: every node can run it, and we can work out its answer (docs/facts.md#contract-abi)."""
