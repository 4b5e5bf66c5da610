"""The help center and the guides for operators."""
