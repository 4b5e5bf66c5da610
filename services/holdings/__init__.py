"""What members hold: what to fetch, fetching it, evaluating requirements, delegations, remembered evidence."""
