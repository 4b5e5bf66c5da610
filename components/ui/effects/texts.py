"""Texts of the catalogue with values that change on the page."""

from typing import Any

import reflex as rx
from reflex.vars import FunctionStringVar, VarData
from reflex_base.utils.imports import ImportVar

from locales import _, forms, pieces

_LIBRARY = "$/public/screens/texts.js"

Value = rx.Var[Any] | str | int


def filled(text: str, **values: Value) -> rx.Var[str]:
    """Return a text with each `{name}` in it replaced by a value that may change."""
    return _call("filled", text, values)


def counted(one: str, several: str, count: rx.Var[Any] | int, **values: Value) -> rx.Var[str]:
    """Return the text for the number `count`, which replaces `{count}` in it; other values as for `filled`."""
    return _call("counted", forms(one, several), {"count": count, **values})


def initial(name: Value) -> rx.Var[str]:
    """Return the first letter of a name as a capital; an emoji counts as one."""
    return _imported("initial").call(name).to(str)


def about(label: str, name: Value) -> rx.Var[str]:
    """Return what is read aloud for one of many buttons that look alike: what it says, and what it is about."""
    # Translators: read aloud for a button: what it says, such as "Delete", and the name of what it is about.
    return filled(_("{label}: {name}"), label=label, name=name)


def sentence(text: str, **parts: rx.Component | Value) -> rx.Component:
    """Return a text with a link, code or a value that may change at each `{name}` in it."""
    return rx.el.span(*[parts[piece] if at % 2 else piece for at, piece in enumerate(pieces(text))])


def _call(function: str, text: str, values: dict[str, Value]) -> rx.Var[str]:
    return _imported(function).call(text, values).to(str)


def _imported(function: str) -> FunctionStringVar[Any]:
    return FunctionStringVar.create(function, _var_data=VarData(imports={_LIBRARY: [ImportVar(tag=function)]}))
