"""Replacement of one contract or one role by another, in all rules of a server at once."""
