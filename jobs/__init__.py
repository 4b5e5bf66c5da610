"""Background work: the schedules, the reconciler, the role writer and the chain followers."""
