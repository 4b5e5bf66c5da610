"""Which texts a database can keep."""


def has_utf_8(text: str) -> bool:
    """Whether the text can be encoded: half of a surrogate pair, which JSON can carry, cannot.

    60 KB take a microsecond; a look at every letter takes 8 ms, in which nobody else is answered.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def can_be_kept(text: str) -> bool:
    """Whether PostgreSQL can store the text: it has UTF-8, and no NUL."""
    return "\x00" not in text and has_utf_8(text)
