"""What Discord's answers have in common: how they are written, refusals and rate limits."""
