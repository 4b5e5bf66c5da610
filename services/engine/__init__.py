"""From queued members to decisions: snapshot, cases, reconcile, policy, decisions, ledger."""
