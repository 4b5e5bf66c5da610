"""Which tokens owners hold, by the contract's standard or by the node's logs."""
