"""Local Discord, marketplaces and chains, independent of the product and reached only over the network."""
