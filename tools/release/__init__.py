"""Makes a release of a clean tree: `make release`."""
