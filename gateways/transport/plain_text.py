"""Text from strangers made safe to show: one line, without invisible or direction-changing characters."""

import unicodedata

_JOINERS = frozenset("\u200c\u200d")
"""Zero-width joiners and non-joiners, which emoji and several scripts need."""


def plain(text: str, longest: int) -> str:
    """Return the text on one line of at most `longest` characters, without control, format or unassigned characters."""
    shown = "".join(one for one in text if one.isspace() or unicodedata.category(one)[0] != "C")
    return " ".join(shown.split())[:longest].strip()


def one_line(text: str) -> str:
    """Return the text on one line, like `plain` but of any length and with the joiners of emoji and scripts."""
    shown = "".join(one for one in text if one.isspace() or one in _JOINERS or unicodedata.category(one)[0] != "C")
    return " ".join(shown.split()).strip("".join(_JOINERS))
