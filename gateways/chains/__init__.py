"""What is the same on every chain: the catalogue of chains, sheets of holdings, indexers, traits."""
