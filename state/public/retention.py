"""Retention times for the privacy policy."""

from services.accounts.forgotten_people import DIGEST_DAYS
from services.privacy.retention import LEFT_DAYS, RIVAL_DAYS, TALLY_DAYS, TOLD_DAYS, TRAIL_DAYS, UNTOLD_DAYS
from services.rules.types.stored_address_lists import UNUSED_HOURS

__all__ = [
    "DIGEST_DAYS",
    "LEFT_DAYS",
    "RIVAL_DAYS",
    "TALLY_DAYS",
    "TOLD_DAYS",
    "TRAIL_DAYS",
    "UNTOLD_DAYS",
    "UNUSED_HOURS",
]
