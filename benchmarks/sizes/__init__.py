"""Benchmarks of growing sizes: whole sweeps in a long-lived process, and Discord's limits."""
