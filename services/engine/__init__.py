"""From queued members to decisions: snapshot, cases, reconcile, read and confirm, decide, ledger."""
