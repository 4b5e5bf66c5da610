"""Benchmarks of how the work grows: whole rounds in a process that stays, and the limits of Discord."""
