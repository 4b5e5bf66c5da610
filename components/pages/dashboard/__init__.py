"""The dashboard, the invite list, and the form that adds a server by hand."""
