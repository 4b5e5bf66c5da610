"""The language that a browser asks for: by cookie, otherwise by `Accept-Language` (RFC 9110, section 12.5.4)."""

import re
from functools import lru_cache

from locales import ENGLISH, LANGUAGES, matching

COOKIE = "hf_language"
"""Holds the language that a person chose in this browser."""
CHOICE_PATH = "/language/"
"""Followed by a language: stores the choice and returns to the page (app/http/languages.py)."""
_RANGE = re.compile(r"\s*([A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*)\s*(?:;\s*q\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*)?")
_MOST_RANGES = 30


def asked_for(cookies: str | None, accepted: str | None) -> str:
    """Return the language for a request with these `Cookie` and `Accept-Language` headers, or English."""
    return chosen_in(cookies) or _accepted((accepted or "")[:1000])


def chosen_in(cookies: str | None) -> str | None:
    """Return the language that a person chose in this browser, by its `Cookie` header."""
    for part in (cookies or "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE and value in LANGUAGES:
            return value
    return None


@lru_cache(maxsize=1024)
def _accepted(header: str) -> str:
    best, quality = ENGLISH, 0.0
    for one in header.split(",")[:_MOST_RANGES]:
        if (found := _RANGE.fullmatch(one)) is None:
            continue
        weight = float(found[2] or 1)
        # Among languages of equal weight the first one wins.
        if weight > quality and (ours := matching(found[1])) is not None:
            best, quality = ours, weight
    return best
