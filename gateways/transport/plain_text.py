"""What strangers write, made fit to be shown: one line, without what is invisible or turns the text around."""

import unicodedata

_JOINERS = frozenset("\u200c\u200d")
"""They join what is seen: the parts of an emoji, and letters of several scripts."""


def plain(text: str, longest: int) -> str:
    """The text on one line of at most `longest` characters, without control, format or unassigned characters."""
    shown = "".join(one for one in text if one.isspace() or unicodedata.category(one)[0] != "C")
    return " ".join(shown.split())[:longest].strip()


def one_line(text: str) -> str:
    """The text on one line, as somebody means it to be seen: like `plain`, with the joiners of emoji and scripts."""
    shown = "".join(one for one in text if one.isspace() or one in _JOINERS or unicodedata.category(one)[0] != "C")
    return " ".join(shown.split()).strip("".join(_JOINERS))
