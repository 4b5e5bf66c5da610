"""Retention times for the privacy policy."""

from services.privacy.retention import LEFT_DAYS, TOLD_DAYS, UNTOLD_DAYS

__all__ = ["LEFT_DAYS", "TOLD_DAYS", "UNTOLD_DAYS"]
