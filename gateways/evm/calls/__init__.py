"""View calls: any function of any contract by its signature, asked about many wallets at once."""
