"""Access to external services: connections, deadlines, fair turns, safe fetching, strict JSON, errors."""
