"""The parts screens are made of, each a function that returns a component."""
