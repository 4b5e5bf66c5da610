"""What every other package of services uses: who acts, errors, the audit log, the queue, addresses, texts."""
