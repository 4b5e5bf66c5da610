"""Health: readiness, monitoring, providers, backlog, alerts, metrics."""
