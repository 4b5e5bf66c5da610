"""Discord's gateway: connections, sessions, events and their limits."""
