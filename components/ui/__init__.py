"""The parts of screens, each a function that returns a component."""
