"""What every part of the sandbox uses: people, budgets, faults, the journal, traffic."""
