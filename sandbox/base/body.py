"""Readers for the bodies of control calls; a refusal says in a sentence what is missing."""

from typing import Any

from aiohttp import web

from sandbox.base.refusal import Refusal

Body = dict[str, Any]


async def fields(request: web.Request) -> Body:
    """Return the JSON object in the body; an empty body gives an empty object. Raises Refusal(400)."""
    body: Any = await request.json() if await request.text() else {}
    if not isinstance(body, dict):
        raise Refusal(400, "The body is a JSON object.")
    return body


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


def number(body: Body, name: str) -> float:
    """Return a required number. Raises Refusal(400)."""
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Refusal(400, f"{name} is a number.")
    return float(value)
