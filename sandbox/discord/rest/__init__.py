"""Discord's REST API."""
