"""Rules as documents: export of a server's rules, and import of them and of other bots' rules."""
