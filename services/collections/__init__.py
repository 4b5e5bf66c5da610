"""Which collection is meant, what it is called, its token standard and its traits."""
