"""Rules: requirements, validation, automatic names (`draft.py`), wording, limits, automatic pauses, and views."""
