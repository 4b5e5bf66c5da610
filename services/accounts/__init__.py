"""People who sign in: their accounts, sessions, and the tokens that Discord gave us for them."""
