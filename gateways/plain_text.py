"""What strangers write, made fit to be shown: one line, without what is invisible or turns the text around."""

import unicodedata


def plain(text: str, longest: int) -> str:
    """The text on one line of at most `longest` characters, without control, format or unassigned characters."""
    shown = "".join(one for one in text if one.isspace() or unicodedata.category(one)[0] != "C")
    return " ".join(shown.split())[:longest].strip()
