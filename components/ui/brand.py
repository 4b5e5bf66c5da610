"""The product's mark: kelp that holds on to its stone."""

import reflex as rx

from settings import settings

_STONE = "M5 25.5c0-4 4.9-6.5 11-6.5s11 2.5 11 6.5S22.1 31 16 31 5 29.5 5 25.5Z"
_STEMS = (
    "M16 2c-2.6 4 2.6 6.5 0 11-1 1.8-4.5 3.5-5.5 8.5",
    "M16 13c1.2 2.5 4.8 4 5.5 8.5",
    "M16 12v9.5",
)


def mark(class_name: str = "size-8") -> rx.Component:
    """The drawn mark, in the colour of the text around it."""
    stems = [
        rx.el.svg.path(d=stem, stroke="currentColor", stroke_width="2.6", stroke_linecap="round", fill="none")
        for stem in _STEMS
    ]
    return rx.el.svg(
        rx.el.svg.path(d=_STONE, fill="currentColor", opacity="0.28"),
        *stems,
        view_box="0 0 32 32",
        class_name=f"text-primary {class_name}",
        aria_hidden="true",
    )


def wordmark(href: str = "/") -> rx.Component:
    """Mark and name as the way home."""
    return rx.el.a(
        mark(),
        rx.el.span(settings().product_name, class_name="display text-xl font-bold"),
        href=href,
        class_name="flex items-center gap-2 rounded-field",
    )
