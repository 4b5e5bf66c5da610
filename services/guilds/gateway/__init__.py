"""The gateway in the database: identifies, and which process runs which shard."""
