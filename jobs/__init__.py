"""The clock, the look at due members, and the writer of roles."""
