"""Programs behind `make` and git's hooks, apart from the product."""
