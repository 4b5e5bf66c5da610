"""Retention times for the privacy policy."""

from services.privacy.retention import LEFT_DAYS, TALLY_DAYS, TOLD_DAYS, TRAIL_DAYS, UNTOLD_DAYS

__all__ = ["LEFT_DAYS", "TALLY_DAYS", "TOLD_DAYS", "TRAIL_DAYS", "UNTOLD_DAYS"]
