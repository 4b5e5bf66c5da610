"""What every call shares: who calls, limits, JSON shapes, errors, and the API's description."""
