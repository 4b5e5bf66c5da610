"""A stranger to the product: a local Discord, local marketplaces and local chains, reached only over the wire."""
