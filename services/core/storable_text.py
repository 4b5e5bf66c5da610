"""Which texts the database can store."""


def has_utf_8(text: str) -> bool:
    """Return whether the text can be encoded as UTF-8. Half a surrogate pair, which JSON can carry, cannot.

    Encoding 60 KB takes a microsecond. A loop over the characters takes 8 ms and blocks the event loop.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def can_be_kept(text: str) -> bool:
    """Return whether PostgreSQL can store the text: it can be encoded as UTF-8 and contains no NUL."""
    return "\x00" not in text and has_utf_8(text)
