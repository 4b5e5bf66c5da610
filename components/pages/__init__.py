"""One module per screen; functions without logic."""
