"""A server's tabs."""
