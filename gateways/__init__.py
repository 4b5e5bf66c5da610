"""The outside world, one module a provider."""
