"""The accounts of people who sign in: their sessions, and the tokens that Discord granted."""
