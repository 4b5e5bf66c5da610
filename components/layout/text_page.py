"""Pages of text: one column, headings with anchors, steps and lists."""

import re
from collections.abc import Iterable

import reflex as rx

from locales.text_marks import english_of

Text = str | rx.Component | rx.Var[str]


def reading(title: str, lead: Text, *children: rx.Component) -> rx.Component:
    """Return a page of text at a readable width."""
    return rx.el.div(
        rx.el.h1(title, class_name="text-3xl font-bold sm:text-4xl"),
        rx.el.p(lead, class_name="muted mt-3 text-lg"),
        rx.el.div(*children, class_name="mt-10 flex flex-col gap-8"),
        class_name="mx-auto w-full max-w-3xl px-4 py-12 sm:px-6 sm:py-16",
    )


def chapter(title: str, *children: Text) -> rx.Component:
    """Return a heading and its content; plain texts become paragraphs."""
    return rx.el.section(
        rx.el.h2(title, class_name="text-xl font-semibold sm:text-2xl"),
        *[rx.el.p(child) if isinstance(child, str) else child for child in children],
        id=anchor_of(title),
        class_name="flex scroll-mt-8 flex-col gap-3",
    )


def bullets(items: Iterable[Text]) -> rx.Component:
    """Return a bulleted list."""
    return rx.el.ul(*[rx.el.li(item) for item in items], class_name="list-disc space-y-1.5 ps-5 marker:text-accent")


def steps(items: Iterable[tuple[str, Text]]) -> rx.Component:
    """Return numbered steps, each with a name and what to do."""
    return rx.el.ol(
        *[
            rx.el.li(
                rx.el.span(
                    str(number),
                    class_name="display grid size-8 shrink-0 place-items-center rounded-full bg-primary "
                    "font-semibold text-primary-content",
                    aria_hidden="true",
                ),
                rx.el.div(
                    rx.el.h3(title, class_name="pt-1 font-semibold"),
                    rx.el.p(text, class_name="muted mt-1 break-words"),
                    class_name="min-w-0",
                ),
                class_name="flex gap-3",
            )
            for number, (title, text) in enumerate(items, start=1)
        ],
        class_name="flex flex-col gap-4",
    )


def code(text: str) -> rx.Component:
    """Return code within a sentence."""
    return rx.el.code(text, class_name="code rounded bg-base-300/60 px-1 py-0.5 break-words")


def link(label: str | rx.Var[str], href: str | rx.Var[str]) -> rx.Component:
    """Return a link within a sentence."""
    return rx.el.a(
        label,
        href=href,
        reload_document=isinstance(href, str) and href.startswith(("/api/", "/discord", "mailto:")),
        class_name="font-medium text-primary underline underline-offset-2",
    )


def anchor_of(title: str) -> str:
    """Return a heading's anchor, which is the same in every language."""
    return re.sub(r"[^a-z0-9]+", "-", english_of(title).lower()).strip("-")
