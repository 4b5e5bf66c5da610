"""What connects an admin's programs with a server: its API tokens and its webhook."""
