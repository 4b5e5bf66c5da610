"""Text from strangers made safe to show: one line, without invisible or direction-changing characters."""

import unicodedata

_JOINERS = frozenset("\u200c\u200d")
"""Zero-width joiners and non-joiners, which emoji and several scripts need."""
_BLANKS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and a symbol that are drawn as nothing: the fillers of Hangul, and the empty Braille pattern."""


def plain(text: str, longest: int) -> str:
    """Return the text on one line of at most `longest` characters, without control, format or unassigned characters."""
    shown = "".join(one for one in text if one.isspace() or unicodedata.category(one)[0] != "C")
    return " ".join(shown.split())[:longest].strip()


def one_line(text: str) -> str:
    """Return the text on one line, like `plain` but of any length and with the joiners of emoji and scripts.

    It is empty if nothing of it would be seen.
    """
    kept = (one for one in text if one.isspace() or one in _JOINERS or unicodedata.category(one)[0] != "C")
    line = " ".join("".join(" " if one in _BLANKS else one for one in kept).split()).strip("".join(_JOINERS))
    return line if any(unicodedata.category(one)[0] not in "CMZ" for one in line) else ""
