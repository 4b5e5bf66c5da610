"""What Discord's answers have in common: their form, refusals and rate limits."""
