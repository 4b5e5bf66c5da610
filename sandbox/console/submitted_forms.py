"""What a submitted form asks for: the body of an interaction, and the place where the form was."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from aiohttp import web

from sandbox.base.body import Form, form
from sandbox.base.refusal import Refusal

_PLAIN = ("guild", "channel", "kind", "name", "custom_id", "message_id")


async def submitted(request: web.Request) -> Form:
    """Return the fields of a form. Raises Refusal(400)."""
    try:
        return await form(request)
    except ValueError:
        raise Refusal(400, "The body is not a form.") from None


def interaction_of(form: Form) -> dict[str, Any]:
    """Return the body of POST /control/interactions; `option.<name>` and `field.<custom id>` become objects.

    `offered` names the choices of a modal; one without a field is an empty list.
    """
    body: dict[str, Any] = {name: str(form[name]) for name in _PLAIN if form.get(name)}
    body["user"] = str(form.get("as", ""))
    options = _named(form, "option.")
    if options:
        body["options"] = {name: values[0] for name, values in options.items()}
    offered: dict[str, list[str]] = {str(name): [] for name in form.getall("offered", [])}
    filled = offered | _named(form, "field.")
    if filled:
        body["fields"] = {name: values[0] if len(values) == 1 else values for name, values in filled.items()}
    if "values" in form:
        body["values"] = [str(value) for value in form.getall("values")]
    return body


def _named(form: Form, prefix: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, value in form.items():
        text = str(value).replace("\r\n", "\n")
        if key.startswith(prefix) and text != "":
            found.setdefault(key.removeprefix(prefix), []).append(text)
    return found


def place_of(form: Form) -> Mapping[str, str]:
    """Return the query of the place where the form was; the redirect leads only to places of the console."""
    try:
        return dict(parse_qsl(urlsplit(str(form.get("back", ""))).query))
    except ValueError:
        return {}
