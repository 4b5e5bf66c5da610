"""What queues members: gateway events, transfers on the chains, the daily sweep, re-checks."""
