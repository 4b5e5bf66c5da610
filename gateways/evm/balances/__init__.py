"""Balances in bulk: `balanceOf` of many contracts and owners in one call. By token id (ERC-1155): `evm/tokens`."""
