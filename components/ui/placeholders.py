"""Placeholders of any content: nothing there yet, still loading (later with a retry button), or not loadable."""

import reflex as rx

from components.ui.button import button
from locales import _
from state.core.timing import PATIENCE_MILLISECONDS


def empty(
    icon: str, title: str, text: str | rx.Var[str] | rx.Component, *actions: rx.Component, whole_screen: bool = False
) -> rx.Component:
    """Return why there is nothing here and what to do; `whole_screen` if there is no other heading."""
    heading = rx.el.h1 if whole_screen else rx.el.h2
    return rx.el.div(
        rx.el.span(
            rx.icon(icon, size=28, aria_hidden="true"),
            class_name="grid size-14 place-items-center rounded-full bg-base-200 text-primary",
        ),
        heading(title, class_name="mt-4 text-lg font-semibold"),
        rx.el.p(text, class_name="muted mt-1 max-w-md"),
        rx.el.div(*actions, class_name="mt-5 flex flex-wrap justify-center gap-3") if actions else rx.fragment(),
        class_name="flex flex-col items-center py-8 text-center",
    )


def skeleton(class_name: str) -> rx.Component:
    """Return the placeholder of content that is loading, in its size."""
    return rx.el.div(class_name=f"skeleton rounded-field {class_name}", aria_hidden="true")


def skeleton_cards(class_name: str = "h-48") -> rx.Component:
    """Return a grid of three placeholder cards."""
    return rx.el.div(
        *[skeleton(class_name) for _ in range(3)], class_name="grid grid-cols-1 gap-5 sm:grid-cols-2 lg:grid-cols-3"
    )


def progress(label: str | rx.Var[str]) -> rx.Component:
    """Return a progress bar of unknown length, with a label."""
    return rx.el.div(
        rx.el.progress(class_name="progress progress-primary w-full", aria_label=label),
        rx.el.p(label, class_name="muted text-sm"),
        class_name="flex flex-col gap-2",
        role="status",
    )


def could_not_load(
    again: rx.event.EventType[()], reason: str | rx.Var[str] | None = None, *, in_card: bool = False
) -> rx.Component:
    """Return a message for content that could not be read, with its reason and a button to try again.

    `in_card` for a part of a card, which has a surface already.
    """
    return rx.el.section(
        empty(
            "cloud-off",
            _("This could not be loaded"),
            _("A service did not answer. Nothing was changed.") if reason is None else reason,
            button(_("Try Again"), kind="primary", icon="refresh-cw", on_click=again),
        ),
        class_name="" if in_card else "surface p-5 sm:p-6",
    )


def once_read(
    loaded: rx.Var[bool] | bool,
    failed: rx.Var[bool] | bool,
    load: rx.event.EventType[()],
    content: rx.Component | rx.Var[rx.Component],
    *outline: rx.Component,
    word: str = "",
    in_card: bool = False,
) -> rx.Component:
    """Return content once it is loaded; until then its outline, and after a failure a button to try again."""
    fault = could_not_load(load, in_card=in_card)
    return rx.cond(loaded, content, rx.cond(failed, fault, waiting(load, *outline, word=word)))


def waiting(again: rx.event.EventType[()], *outline: rx.Component, word: str = "") -> rx.Component:
    """Return the placeholders of loading content; after a while also a button to try again."""
    said = rx.el.p(word, class_name="muted mb-4") if word else rx.el.p(_("Loading"), class_name="sr-only")
    return rx.el.div(
        said,
        *outline,
        rx.el.div(
            rx.el.p(_("This takes longer than usual."), class_name="muted mb-3"),
            button(_("Try Again"), icon="refresh-cw", on_click=again),
            class_name="late mt-6 text-center",
            style={"--patience": f"{PATIENCE_MILLISECONDS}ms"},
        ),
        role="status",
        aria_label=_("Loading"),
    )
