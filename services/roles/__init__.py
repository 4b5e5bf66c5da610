"""Role changes on their way to Discord: the outbox, its results, writes in doubt, the breaker, the lease."""
