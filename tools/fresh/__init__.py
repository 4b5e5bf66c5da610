"""The commands of the README on empty machines: `make fresh`, `make fresh-image` and `make fresh-wheel`."""
