"""Limits of the panel's texts and the name of its fixed part, for the help center."""

from services.core.discord_text import LONGEST_DESCRIPTION
from services.guilds.panel import LONGEST_EMBED, LONGEST_LABEL, LONGEST_TITLE, SAFE_NAME

__all__ = ["LONGEST_DESCRIPTION", "LONGEST_EMBED", "LONGEST_LABEL", "LONGEST_TITLE", "SAFE_NAME"]
