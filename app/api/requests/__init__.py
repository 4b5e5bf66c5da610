"""The parts that all calls share: the caller, limits, JSON shapes, errors, and the API's description."""
