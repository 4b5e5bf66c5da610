"""EVM nodes over JSON-RPC: one node, the pool of a chain, and the limits learnt of each node."""
