"""The product's mark: kelp that holds on to its stone."""

import reflex as rx

from settings import settings

_STONE = "M6 26.2C6 22.8 10.4 21 16 21s10 1.8 10 5.2S21.6 31 16 31 6 29.6 6 26.2Z"
_STEMS = ("M16 21C16 15 10.5 15 10.5 9.5S13 4 11.5 1.5", "M16 21c0-6 5.5-5 5.5-10S19 6.5 20.5 3", "M16 21v-7")


def mark(class_name: str = "size-8") -> rx.Component:
    """Return the mark in the colour of the text around it."""
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
    """Return the mark and the name, as a link home."""
    return rx.el.a(
        mark(),
        rx.el.span(settings().product_name, class_name="display text-xl font-bold"),
        href=href,
        class_name="flex items-center gap-2 rounded-field",
    )
