"""Text and colours of Discord messages. Other people's text is literal: never markup, a mention or a link."""

import re

from gateways.transport.plain_text import one_line

_MARKUP = re.compile(r"([\\*_~`|\[\]<@]|^[#>-])")
_LINK = re.compile(r"(https?):/+", re.IGNORECASE)
LONGEST_DESCRIPTION = 4096
LONGEST_FIELD = 1024
"""Maximum characters of an embed's description and a field's value (docs/facts.md#discord-messages)."""
DEFAULT_COLOR = "#5865F2"
"""The colour of a role that has none."""
COLORS = {"good": 0x2E9E6B, "warning": 0xD9902F, "bad": 0xD64545, "info": 0x2F7DD1}
"""The colour of an embed by what it reports, 0xRRGGBB."""


def plain(text: str, longest: int = 200) -> str:
    """Return the text on one line, shortened, with Discord's markup escaped."""
    return _MARKUP.sub(r"\\\1", _LINK.sub(r"\1 ", cut(one_line(text), longest)))


def cut(text: str, longest: int) -> str:
    """Return the text, shortened to Discord's limit `longest`."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def color_hex(color: int) -> str:
    """Return Discord's colour number as six hexadecimal digits; 0 means no colour and returns DEFAULT_COLOR."""
    return f"#{color:06X}" if color else DEFAULT_COLOR
