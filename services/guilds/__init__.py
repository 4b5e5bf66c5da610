"""What Discord says of servers: members, permissions, roles, channels, and the limits it sets."""
