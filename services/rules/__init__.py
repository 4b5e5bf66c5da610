"""Rules: requirements, validation, wording, limits, automatic pauses, and views."""
