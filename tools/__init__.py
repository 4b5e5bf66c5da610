"""What `make` and git's hooks run, and what is no part of the product."""
