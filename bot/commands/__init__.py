"""The slash commands and what the panel's buttons do."""
