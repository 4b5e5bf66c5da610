"""Rules: requirements, validation, wording (with automatic names), limits, automatic pauses, and views."""
