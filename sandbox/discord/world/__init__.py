"""The Discord world: entities, permissions, the audit log, and the world at the start."""
