"""How we reach others: connections, deadlines, fair turns, safe fetching, strict JSON, errors."""
