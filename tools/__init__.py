"""What only `make` runs, and what is no part of the product."""
