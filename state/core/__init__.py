"""What every screen's state uses: the gate, the session, errors, retries, timing, toasts."""
