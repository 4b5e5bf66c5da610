"""Rules: what they require, how they are written, worded, limited, paused and listed."""
