"""Texts that are stored and read later, each time in the language of the reader."""

import json
from collections.abc import Collection
from typing import Any, cast

from locales import _, ngettext

_BEGINNING = '{"text": '
_OF_TOKENS = frozenset({"token", "host"})


def storable(text: str, **values: str | int) -> str:
    """Return a text of the catalogue and the values for its places as one string, which `said` reads."""
    return json.dumps({"text": text, "values": values}, ensure_ascii=False) if values else text


def storable_count(one: str, several: str, count: int, **values: str | int) -> str:
    """Return a text of the catalogue that depends on a number, as `storable` does."""
    document = {"text": one, "several": several, "count": count, "values": {"count": count, **values}}
    return json.dumps(document, ensure_ascii=False)


def within(text: str) -> str:
    """Return a stored text in a form that can be a value of another one; `said` then reads it with that one."""
    return text if text.startswith(_BEGINNING) else json.dumps({"text": text, "values": {}}, ensure_ascii=False)


def with_token_hidden(text: str) -> str:
    """Return a stored text with `…` in place of what would name the wallet that holds a token.

    That is the token's id, and the host of its own link, which its contract may choose for this token alone.
    """
    return with_hidden(text, _OF_TOKENS)


def with_hidden(text: str, names: Collection[str]) -> str:
    """Return a stored text with `…` in place of the values with these names, in the texts within it too."""
    if not text.startswith(_BEGINNING):
        return text
    try:
        found = cast("dict[str, Any]", json.loads(text))
        values = {
            name: "…" if name in names else with_hidden(one, names) if isinstance(one, str) else one
            for name, one in found["values"].items()
        }
        return json.dumps(found | {"values": values}, ensure_ascii=False)
    except (ValueError, LookupError, TypeError, AttributeError):
        return text


def said(text: str) -> str:
    """Return a stored text in the reader's language. A text without values is looked up, or appears as it is."""
    if not text.startswith(_BEGINNING):
        return _(text)
    try:
        found = cast("dict[str, Any]", json.loads(text))
        # A value may be a stored text as well.
        values = {name: said(one) if str(one).startswith(_BEGINNING) else one for name, one in found["values"].items()}
        one, several = found["text"], found.get("several")
        return (_(one) if several is None else ngettext(one, several, found["count"])).format(**values)
    except (ValueError, LookupError, TypeError, AttributeError):
        # Not a text that `storable` returned.
        return text
