"""Discord's side of servers: members, permissions, roles, channels, and Discord's limits."""
