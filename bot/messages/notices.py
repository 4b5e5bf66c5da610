"""The embed with what a member has not been told yet, above the bot's next answer."""

import itertools
from collections.abc import Sequence

import nextcord

from bot.messages.reply import lines
from locales import _
from services.core.discord_text import COLORS
from services.servers.notices import NoticeView

MOST_OF_NOTICES = 2_000
"""Characters of the notices above one reply; Discord limits all embeds of a message together."""


def fitting(notices: Sequence[NoticeView]) -> list[NoticeView]:
    """Return the first notices that fit above a reply, at least one; the others are shown the next time."""
    length = itertools.accumulate(len(notice.text) for notice in notices)
    return [notice for place, (notice, used) in enumerate(zip(notices, length, strict=True))
            if not place or used <= MOST_OF_NOTICES]  # fmt: skip


def embed(notices: Sequence[NoticeView]) -> nextcord.Embed:
    """Return the embed of these notices."""
    text = lines([notice.text for notice in notices])
    return nextcord.Embed(title=_("Since we last met"), description=text, color=COLORS["warning"])
