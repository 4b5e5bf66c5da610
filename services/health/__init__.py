"""How everything is: readiness, monitoring, providers, backlog, alerts, metrics."""
