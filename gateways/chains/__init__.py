"""The parts that all chains share: the catalogue of chains, sheets of holdings, indexers, traits."""
