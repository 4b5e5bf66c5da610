"""Readers for JSON, forms, and the bodies of control calls, whose refusals say in a sentence what is missing."""

import json
import math
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from multidict import MultiDictProxy

from sandbox.base.refusal import Refusal

Body = dict[str, Any]
Form = MultiDictProxy[Any]
GREATEST = 2**53
"""The greatest number that every reader of JSON keeps exactly."""
MOST_DIGITS = 78
"""The decimal digits of the greatest number of 256 bits."""


async def fields(request: web.Request) -> Body:
    """Return the JSON object in the body; an empty body gives an empty object. Raises Refusal(400)."""
    content = await request.read()
    try:
        body = parsed(content) if content else {}
    except ValueError:
        raise Refusal(400, "The body is not JSON.") from None
    if not isinstance(body, dict):
        raise Refusal(400, "The body is a JSON object.")
    return body


async def form(request: web.Request) -> Form:
    """Return the fields of a form: texts, files, and the bytes of parts of another type. Raises ValueError."""
    try:
        sent = await request.post()
    except (LookupError, AssertionError, RuntimeError, HttpProcessingError) as unreadable:
        # An unknown charset, a multipart body without its first boundary, a part of an unknown encoding or whose
        # headers are none.
        raise ValueError("It is no form.") from unreadable
    for name, value in sent.items():
        f"{name}{value if isinstance(value, str) else ''}".encode()  # half a surrogate pair is not text
    return sent


def parsed(content: bytes) -> Any:
    """Return what is in a JSON text, which is UTF-8 (RFC 8259 section 8.1). Raises ValueError."""
    try:
        found = json.loads(content.decode(), parse_constant=_no_number, parse_float=_finite)
        if b"\\u" in content:
            json.dumps(found, ensure_ascii=False).encode()  # half a surrogate pair is not text
    except RecursionError:
        raise ValueError("It is nested too deeply.") from None
    return found


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no JSON.")


def _finite(digits: str) -> float:
    """Return the number. Raises ValueError for one like 1e400, which is infinite to most readers of JSON."""
    if math.isinf(found := float(digits)):
        raise ValueError(f"{digits} is no number.")
    return found


def is_whole(digits: str) -> bool:
    """Return whether a text is a whole number in decimal digits, of at most about 256 bits."""
    return digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS


def text(body: Body, name: str) -> str:
    """Return a required text; an integer (an id, a fault called 429) becomes its digits. Raises Refusal(400)."""
    value = body.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        raise Refusal(400, f"{name} is missing.")
    return value


def optional_text(body: Body, name: str) -> str | None:
    """Return the text, or None where it is absent or null. Raises Refusal(400)."""
    return text(body, name) if body.get(name) is not None else None


def flag(body: Body, name: str, default: bool | None = None) -> bool:
    """Return a truth value; it may be absent where there is a default. Raises Refusal(400)."""
    if not isinstance(value := body.get(name, default), bool):
        raise Refusal(400, f"{name} is true or false.")
    return value


def number(body: Body, name: str) -> float:
    """Return a required number. Raises Refusal(400)."""
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Refusal(400, f"{name} is a number.")
    if abs(value) > GREATEST:
        raise Refusal(400, f"{name} is a number of at most {GREATEST}.")
    return float(value)


def trait_values(body: Body) -> dict[str, str | float]:
    """Return the required `traits`: type → value, a text, a number or a truth value. Raises Refusal(400)."""
    given = body.get("traits")
    if not isinstance(given, dict) or not all(isinstance(value, str | int | float) for value in given.values()):
        raise Refusal(400, "traits is an object of trait types and values, which are texts or numbers.")
    return given
