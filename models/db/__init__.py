"""The engine, sessions and transactions, the database's clock, and column types."""
