"""How long things are kept, for the page that says so."""

from services.privacy.retention import LEFT_DAYS, TOLD_DAYS, UNTOLD_DAYS

__all__ = ["LEFT_DAYS", "TOLD_DAYS", "UNTOLD_DAYS"]
