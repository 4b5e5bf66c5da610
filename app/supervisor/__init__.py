"""The supervisor of one machine: which processes there are, and keeping them running."""
