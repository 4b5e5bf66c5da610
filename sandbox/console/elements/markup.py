"""Markup that cannot be forged: an element escapes everything put into it that is not markup already."""

from collections.abc import Iterable
from html import escape

EMPTY = frozenset({"br", "hr", "img", "input", "link", "meta"})


class Markup(str):
    """Text that is markup, made by `el` or written in this package."""

    __slots__ = ()


Child = str | Iterable["Child"] | None
Value = str | int | bool | None


def el(name: str, /, *children: Child, **attributes: Value) -> Markup:
    """Return an element.

    `class_` and `for_` lose their underscore, and `data_key` becomes `data-key`. None and False leave an attribute out;
    True writes its name alone.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in EMPTY:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: Child) -> Markup:
    """Return the children one after another; text among them is escaped."""
    return Markup("".join(_child(child) for child in children))


def _child(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str):
        return escape(child)
    return "".join(_child(each) for each in child)


def _attribute(name: str, value: Value) -> str:
    if value is None or value is False:
        return ""
    written = name.rstrip("_").replace("_", "-")
    return f" {written}" if value is True else f' {written}="{escape(str(value))}"'
