"""What members hold: plan the reads, fetch, evaluate requirements, delegations, and stored evidence."""
