"""Form fields: a label, the control, a hint and an error."""

from typing import Any

import reflex as rx
from reflex_base.components.component import BaseComponent

from state.core.form_fault import FormFault

Hint = str | rx.Component | rx.Var[Any]
Error = str | rx.Var[str] | None


def field(label: str, control: rx.Component, *, hint: Hint = "", error: Error = None) -> rx.Component:
    """Return a control with its label above and its hint or error below; the first id in the control connects them.

    While there is an error, the control is marked as invalid.
    """
    name = _first_id(control)
    below: list[rx.Component] = []
    words: list[str] = []
    if not isinstance(hint, str) or hint:
        words.append(f"{name}-hint")
        below.append(rx.el.p(hint, id=f"{name}-hint", class_name="muted text-sm"))
    if error is not None:
        words.append(f"{name}-error")
        below.append(
            rx.cond(
                rx.Var.create(error) != "",
                rx.el.p(error, id=f"{name}-error", class_name="text-sm font-medium text-error", role="alert"),
            )
        )
    attributes: dict[str, Any] = {"aria-describedby": " ".join(words)} if words else {}
    if error is not None:
        attributes["aria-invalid"] = rx.cond(rx.Var.create(error) != "", "true", "false")
    _describe(control, name, attributes)
    return rx.el.div(
        rx.el.label(label, html_for=name, class_name="text-sm font-semibold"),
        control,
        *below,
        class_name="flex flex-col gap-1.5",
    )


def fault_of(form: type[FormFault], name: str) -> rx.Var[str]:
    """Return why the form refused this field; empty if it did not."""
    return rx.cond(form.fault_field == name, form.fault_text, "")


def fault_line(form: type[FormFault], name: str) -> rx.Component:
    """Return a line below a group of fields with why the form refused it."""
    return rx.cond(
        form.fault_field == name,
        rx.el.p(form.fault_text, class_name="mt-2 text-sm font-medium text-error", role="alert"),
    )


def _first_id(part: BaseComponent) -> str:
    """Return the id of this part of a page or of the first part inside it that has one; empty if none has."""
    if isinstance(part, rx.Component) and isinstance(part.id, str):
        return part.id
    return next(filter(None, map(_first_id, part.children)), "")


def _describe(part: BaseComponent, name: str, attributes: dict[str, Any]) -> None:
    """Give the control with this id, in this part of a page, these attributes."""
    if isinstance(part, rx.Component) and isinstance(part.id, str) and part.id == name:
        part.custom_attrs.update(attributes)
    for inside in part.children:
        _describe(inside, name, attributes)


def late_hint(
    arrived: rx.Var[bool] | bool,
    text: rx.Var[str],
    until_then: rx.Component | rx.Var[str] | rx.Var[rx.Component],
    fault: rx.Var[str] | str,
) -> rx.Component:
    """Return a hint that a late answer or a fault replaces. The first keeps its room, so that no field below moves."""
    failed = rx.Var.create(fault) != ""
    return rx.el.span(
        rx.el.span(until_then, class_name=rx.cond(arrived | failed, "invisible", "")),
        rx.cond(failed, rx.el.span(fault, class_name="font-medium text-error"), rx.cond(arrived, rx.el.span(text))),
        class_name="grid *:[grid-area:1/1]",
    )


_OPTIMISTIC = "$/public/screens/optimistic_field.js"


class _OptimisticInput(rx.el.Input):
    library = _OPTIMISTIC
    tag = "OptimisticInput"


class _OptimisticArea(rx.el.Textarea):
    library = _OPTIMISTIC
    tag = "OptimisticArea"


class _OptimisticSelect(rx.el.Select):
    library = _OPTIMISTIC
    tag = "OptimisticSelect"


def typed_input(**props: Any) -> rx.Component:
    """Return an input whose `value` the state keeps; it loses no key while the server has not answered."""
    return _OptimisticInput.create(**{"auto_complete": "off", "class_name": "input", **props})


def text_input(name: str, **props: Any) -> rx.Component:
    """Return a line of text, without the browser's suggestions."""
    make = typed_input if "value" in props else rx.el.input
    return make(id=name, name=name, **{"auto_complete": "off", "class_name": "input", **props})


def text_field(label: str, name: str, *, hint: Hint = "", error: Error = None, **props: Any) -> rx.Component:
    """Return a field for a line of text; `props` are those of `text_input`."""
    return field(label, text_input(name, **props), hint=hint, error=error)


def _number_or_null(event: rx.vars.ObjectVar[dict[str, Any]]) -> tuple[rx.Var[float | None]]:
    """Return the number in a field as an event sends it: null when the field is empty, where Reflex would send 0.

    A number that a browser cannot represent exactly becomes the largest that it can: the server would refuse the event
    (`state.core.gate`), and keep the number before it.
    """
    typed, most = f"{event!s}.target.value", "Number.MAX_SAFE_INTEGER"
    number = f"Math.max(-{most}, Math.min({most}, Number({typed})))"
    return (rx.Var(f"({typed} === '' ? null : {number})").to(float | None),)


class _NumberInput(rx.el.Input):
    on_change: rx.EventHandler[_number_or_null]


def number_input(name: str = "", **props: Any) -> rx.Component:
    """Return an input for a whole number; its `on_change` receives None when it is emptied."""
    named = {"id": name, "name": name} if name else {}
    return _NumberInput.create(type="number", input_mode="numeric", **{"class_name": "input", **named, **props})


def number_field(label: str, name: str, *, hint: Hint = "", **props: Any) -> rx.Component:
    """Return a field for a whole number; `props` are those of `number_input`."""
    return field(label, number_input(name, **props), hint=hint)


def select_input(name: str, *options: rx.Component, **props: Any) -> rx.Component:
    """Return a choice among few; the browser's own control suits keyboards and phones."""
    return typed_select(*options, id=name, name=name, **props)


def select_field(
    label: str, name: str, *options: rx.Component, hint: Hint = "", error: Error = None, **props: Any
) -> rx.Component:
    """Return a field for a choice among few; `props` are those of `select_input`."""
    return field(label, select_input(name, *options, **props), hint=hint, error=error)


def typed_select(*options: rx.Component, **props: Any) -> rx.Component:
    """Return a choice that shows what was chosen while the server has not answered.

    Use `rx.el.select` for a choice that is stored at once, which may be refused.
    """
    return _OptimisticSelect.create(*options, **{"class_name": "select", **props})


def search_input(name: str, label: str, class_name: str = "", **props: Any) -> rx.Component:
    """Return a search with a magnifying glass; the label is only read aloud."""
    return rx.el.div(
        rx.el.label(label, html_for=name, class_name="sr-only"),
        rx.icon(
            "search", size=18, class_name="muted absolute inset-s-3 top-1/2 z-10 -translate-y-1/2", aria_hidden="true"
        ),
        rx.el.input(id=name, type="search", auto_complete="off", spell_check=False, class_name="input ps-10", **props),
        class_name=f"relative {class_name}",
    )


def text_area(name: str, **props: Any) -> rx.Component:
    """Return an input for several lines of text."""
    make = _OptimisticArea.create if "value" in props else rx.el.textarea
    return make(id=name, name=name, class_name="textarea min-h-24", **props)


def switch(name: str, label: str | rx.Var[str], hint: str | rx.Var[str], **props: Any) -> rx.Component:
    """Return a switch with a line about its effect."""
    return rx.el.label(
        rx.el.input(
            name=name, type="checkbox", class_name="toggle toggle-primary mt-0.5", aria_describedby=f"{name}-hint",
            **props,
        ),
        rx.el.span(
            rx.el.span(label, class_name="block text-sm font-semibold"),
            rx.el.span(hint, id=f"{name}-hint", class_name="muted block text-sm"),
            class_name="min-w-0",
        ),
        class_name="flex cursor-pointer items-start gap-3",
    )  # fmt: skip
