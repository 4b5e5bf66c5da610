"""The EVM chains: bulk balances, tokens, transfers, transactions, ENS, delegate.xyz."""
