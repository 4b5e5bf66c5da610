"""The use cases: modules of functions, grouped by domain, that every front door calls with the acting user."""
