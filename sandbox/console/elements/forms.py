"""The console's forms: fields with labels, and the target of each form.

A form of `do` is named after the control call that it makes; a form of `act` is an interaction of the person.
"""

from collections.abc import Iterable, Mapping

from sandbox.console.elements.markup import Child, Markup, el, join
from sandbox.console.elements.place import Place
from sandbox.discord.world.entities import Message


def hidden(**values: str | None) -> Markup:
    """Return hidden fields; None leaves one out."""
    return join(
        el("input", type="hidden", name=name, value=value) for name, value in values.items() if value is not None
    )


def do(place: Place, path: str, *children: Child, class_: str | None = None) -> Markup:
    """Return a form that makes the control call of this path and returns here."""
    return el(
        "form",
        hidden(back=place.url()),
        children,
        method="post",
        action=f"/console/do/{path}",
        data_live=True,
        class_=class_,
    )


def card(place: Place, title: str, path: str, *fields: Child, note: str | None = None, button: str) -> Markup:
    """Return a form of `do` with a heading."""
    heading = join(el("h3", title), el("p", note, class_="dim") if note else None)
    return el("section", heading, do(place, path, fields, el("button", button), class_="fields"), class_="card")


def act(place: Place, kind: str, *children: Child, class_: str | None = None, **values: str | None) -> Markup:
    """Return a form with which the person uses something of the bot."""
    where = {"as": place.user.username, "guild": place.guild.id if place.guild else None}
    return el(
        "form",
        hidden(back=place.url(), kind=kind, channel=place.channel.id if place.channel else None, **where, **values),
        children,
        method="post",
        action="/console/act",
        data_live=True,
        class_=class_,
    )


def press_form(place: Place, kind: str, message: Message, custom_id: str, *children: Child) -> Markup:
    """Return the form of a button or a select of a message."""
    return act(place, kind, *children, message_id=message.id, custom_id=custom_id)


def choice(label: str, name: str, values: Mapping[str, str] | Iterable[str]) -> Markup:
    """Return a menu of values, each with the text that people read."""
    named = values if isinstance(values, Mapping) else {value: value for value in values}
    options = [el("option", text, value=value) for value, text in named.items()]
    return el("label", el("span", label), el("select", options, name=name))


def field(label: str, name: str, value: str = "", *, known: str | None = None, **more: str | bool | None) -> Markup:
    """Return a line to write in; `known` is the id of a list of suggestions."""
    return el("label", el("span", label), el("input", name=name, value=value, list=known, autocomplete="off", **more))


def datalist(id_: str, values: Mapping[str, str]) -> Markup:
    """Return a list of suggestions, for fields that accept anything."""
    return el("datalist", (el("option", text, value=value) for value, text in values.items()), id=id_)
