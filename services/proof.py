"""Reading a bio as a proof: pure judgements over text that an attacker may have written."""

import re
import secrets
from enum import Enum

from settings import settings

_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
"""No i, l, o, 0 and 1: a code is copied by eye."""

CODE_LENGTH = 10


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
    """What the bio proves for the member with this code and this Discord name.

    A marker inside a longer word proves nothing; case does not matter, nor do spaces after the colon.
    """
    text = bio.casefold()
    name = re.escape(bare_name(username).casefold())
    if re.search(rf"(?<![\w-]){re.escape(code.casefold())}(?![\w-])", text):
        return Marker.CODE
    if name and re.search(rf"(?<![\w-]){re.escape(prefix())}:\s*{name}(?![\w.#-])", text):
        return Marker.HANDLE
    if re.search(rf"(?<!\w){re.escape(prefix())}(?!\w)", text):
        return Marker.BARE_PRODUCT
    if name and re.search(rf"(?<!\w){name}(?!\w)", text):
        return Marker.BARE_HANDLE
    return Marker.NOTHING
