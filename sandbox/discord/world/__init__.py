"""The Discord world: entities, permissions, the audit log, and its start."""
