"""Reading a bio as a proof: pure judgements over text that an attacker may have written."""

import re
import secrets
import string
import unicodedata
from enum import Enum

from settings import settings

_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
"""No i, l, o, 0 and 1: a code is copied by eye."""

CODE_LENGTH = 10

_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
"""Case matters beyond ASCII: `ſ` is no `s`, although Unicode folds it to one."""
_AFTER_NAMES = frozenset(',;!?|"•·')


class Marker(Enum):
    """What a bio was found to say."""

    CODE = "code"
    HANDLE = "handle"
    BARE_PRODUCT = "bare_product"
    """Only the product's name, which anybody's bio may carry."""
    BARE_HANDLE = "bare_handle"
    """Only the person's name, and anybody can be called what a stranger's bio says."""
    NOTHING = "nothing"


def prefix() -> str:
    """The product's name as codes and markers carry it."""
    return re.sub(r"[^a-z0-9]", "", settings().product_name.lower())


def new_code() -> str:
    """A fresh personal code: the product's name and 10 unambiguous characters (about 49 random bits)."""
    return f"{prefix()}-" + "".join(secrets.choice(_LETTERS) for _ in range(CODE_LENGTH))


def handle_marker(username: str) -> str:
    """What a member may write instead of their code: the product's name and their Discord name."""
    return f"{prefix()}:{bare_name(username)}"


def bare_name(username: str) -> str:
    """A Discord name without the number that old names carried."""
    return username.split("#", 1)[0].strip()


def judge(bio: str, code: str, username: str) -> Marker:
    """Return what the bio proves for the member with this code and this Discord name.

    A marker inside a longer word proves nothing. ASCII case does not matter. The Discord name follows the colon
    directly: with spaces between them, "I love Holdfast: Mallory is a great movie" would prove a wallet.
    """
    text = bio.translate(_ASCII_LOWER)
    name = re.escape(bare_name(username).translate(_ASCII_LOWER))
    if re.search(rf"(?<![\w-]){re.escape(code.translate(_ASCII_LOWER))}(?![\w-])", text):
        return Marker.CODE
    markers = re.finditer(rf"(?<![\w\-/@.:]){re.escape(prefix())}:{name}", text) if name else ()
    if any(_ends_word(text[found.end() :]) for found in markers):
        return Marker.HANDLE
    if re.search(rf"(?<!\w){re.escape(prefix())}(?!\w)", text):
        return Marker.BARE_PRODUCT
    if name and re.search(rf"(?<!\w){name}(?!\w)", text):
        return Marker.BARE_HANDLE
    return Marker.NOTHING


def _ends_word(rest: str) -> bool:
    """Whether a name is over where `rest` begins: combining and invisible characters, `'s` and `@` continue it."""
    if not rest or rest[0].isspace() or rest[0] in _AFTER_NAMES:
        return True
    # Emoji (So) and closing brackets (Pe).
    return unicodedata.category(rest[0]) in {"So", "Pe"}
