"""Benchmarks: what the product does in numbers, beside other libraries on the same node. Not tests; `make bench`."""
