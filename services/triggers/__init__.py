"""What makes members due for a look: gateway events, transfers on the chains, the daily sweep, re-checks."""
