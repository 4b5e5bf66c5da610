"""What all other packages of services share: the actor, errors, the audit log, the queue, addresses, texts."""
