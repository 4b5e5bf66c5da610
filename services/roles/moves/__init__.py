"""Moves: an admin hands roles over to us from a date to a date, and nobody loses one before its end is approved."""
