"""The ids of rows as others give them: in addresses, forms, buttons and calls."""

LARGEST = 2**31 - 1
"""The largest id that the database's integer columns hold."""


def fits(number: int) -> bool:
    """Return whether a row can have this id; the database refuses a query with a larger one."""
    return 0 < number <= LARGEST


def row_id(text: str) -> int | None:
    """Return the id that a text names; None for any text that names none."""
    # A superscript two is a digit to isdigit() and no number to int().
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST))):
        return None
    return int(text) if int(text) <= LARGEST else None
