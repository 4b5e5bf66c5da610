"""Control calls of the local Discord."""
