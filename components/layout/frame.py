"""The frame around a page's content: banner, navigation and footer; and a page's heading."""

from collections.abc import Callable

import reflex as rx

from components.layout.footer import footer
from components.layout.navigation import MEMBERS_DOCS, member_bar, visitor_bar
from components.layout.page_change import skip_link
from components.layout.sandbox_banner import sandbox_banner
from state.core.session import MEMBER, UNKNOWN, SessionState


def visitor_frame(*children: rx.Component, class_name: str = "") -> rx.Component:
    """Return a public page; its content sets its own widths."""
    return _frame(visitor_bar(), rx.el.main(*children, id="content", class_name=f"flex-1 {class_name}"), footer())


def shared_frame(*children: rx.Component, class_name: str = "") -> rx.Component:
    """Return a page for everybody, with each audience's own navigation around the same content."""
    main = rx.el.main(*children, id="content", class_name=f"flex-1 {class_name}")
    return _frame(of_audience(visitor_bar, member_bar), main, of_audience(footer, lambda: footer(MEMBERS_DOCS)))


def of_audience(visitors: Callable[[], rx.Component], members: Callable[[], rx.Component]) -> rx.Component:
    """Return one of two parts. Until the socket connects both are in the page, and the document shows one of them."""
    audience = SessionState.audience
    return rx.fragment(
        rx.cond(
            audience == MEMBER,
            members(),
            rx.el.div(visitors(), class_name=rx.cond(audience == UNKNOWN, "for-visitors contents", "contents")),
        ),
        rx.cond(audience == UNKNOWN, rx.el.div(members(), class_name="for-members contents")),
    )


def member_frame(*children: rx.Component, narrow: bool = False, logout: bool = True) -> rx.Component:
    """Return a signed-in screen in one column.

    `narrow` limits it to a readable width; `logout` is False on a screen with a log-out button of its own.
    """
    width = "max-w-3xl" if narrow else "max-w-6xl"
    inside = rx.el.main(*children, id="content", class_name=f"mx-auto w-full flex-1 {width} px-4 py-8 sm:px-6 sm:py-10")
    return _frame(member_bar(logout=logout), inside, footer(MEMBERS_DOCS))


def _frame(bar: rx.Component, main: rx.Component, foot: rx.Component) -> rx.Component:
    return rx.el.div(skip_link(), sandbox_banner(), bar, main, foot, class_name="flex min-h-dvh flex-col")


_ACTIONS = (
    "flex flex-wrap gap-2 sm:max-w-full sm:shrink-0 "
    # Below the heading, a button without a border aligns left with it; beside it, right with the page.
    # The margin is the group's: a button's own one would make the group too narrow for it.
    "max-sm:has-[>.btn-ghost:first-child]:-ms-4 sm:has-[>.btn-ghost:last-child]:-me-4 "
    # Only that button lies in the margin: one that wraps to the next line aligns with the heading too.
    "max-sm:has-[>.btn-ghost:first-child]:ps-4 max-sm:[&>.btn-ghost:first-child]:-ms-4 "
    # The limit of all buttons (assets/holdfast.css) is the group's width without that margin.
    "max-sm:[&>.btn-ghost:first-child]:max-w-[calc(100%+1rem)]!"
)


def page_head(title: str | rx.Var[str] | rx.Component, hint: str | rx.Var[str], *actions: rx.Component) -> rx.Component:
    """Return a screen's heading, a line about its purpose, and its main actions."""
    return rx.el.div(
        rx.el.div(
            rx.el.h1(title, class_name="break-words text-2xl font-bold sm:text-3xl"),
            rx.el.p(hint, class_name="muted mt-1.5 max-w-2xl"),
            class_name="min-w-0 max-w-full sm:flex-1 sm:basis-40",
        ),
        rx.el.div(*actions, class_name=_ACTIONS) if actions else rx.fragment(),
        # With large text the buttons go below the heading, which would have no room beside them.
        class_name="mb-8 flex flex-col items-start justify-between gap-4 sm:flex-row sm:flex-wrap sm:items-center",
    )
