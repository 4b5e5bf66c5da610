"""Shared state: the gate, the session, errors, retries, timing and toasts."""
