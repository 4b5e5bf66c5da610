"""The public status page: what works right now, and what does not."""

import reflex as rx

from components.layout.text_page import reading
from components.ui.badge import state_icon
from components.ui.card import card, card_title
from components.ui.effects.every import every
from components.ui.effects.texts import filled
from components.ui.placeholders import skeleton, waiting
from locales import _
from settings import settings
from state.core.timing import STATUS_POLL_SECONDS
from state.public.status import PublicStatusState, StatusLineView

_WORDS = {"good": _("Works"), "warning": _("Works in part"), "bad": _("Does not work"), "unknown": _("Not known yet")}


def status() -> rx.Component:
    """Return the page /status."""
    return reading(
        _("Status"),
        _("What {product} and the services behind it do right now.").format(product=settings().product_name),
        rx.el.div(
            every(STATUS_POLL_SECONDS, PublicStatusState.load, seen_only=True),
            rx.cond(
                PublicStatusState.loaded,
                _shown(),
                waiting(PublicStatusState.load, skeleton("h-24"), skeleton("mt-5 h-56"), skeleton("mt-5 h-72")),
            ),
        ),
    )


def _shown() -> rx.Component:
    return rx.el.div(
        rx.el.div(
            state_icon(PublicStatusState.state, 28),
            rx.el.div(
                rx.el.p(PublicStatusState.headline, class_name="display text-xl font-semibold", role="status"),
                rx.el.p(
                    filled(
                        _("Read at {checked} · version {version}"),
                        checked=PublicStatusState.checked,
                        version=PublicStatusState.version,
                    ),
                    class_name="muted text-sm",
                ),
                class_name="min-w-0",
            ),
            class_name="surface flex items-center gap-4 p-5",
        ),
        _group(_("Services"), PublicStatusState.providers),
        _group(_("Chains"), PublicStatusState.chains),
        _group(_("Background work"), PublicStatusState.sweep),
        class_name="grid grid-cols-1 gap-5",
    )


def _group(title: str, lines: list[StatusLineView]) -> rx.Component:
    return rx.cond(
        lines, card(card_title(title), rx.el.ul(rx.foreach(lines, _line), class_name="divide-y divide-base-300"))
    )


def _line(line: rx.vars.ObjectVar[StatusLineView]) -> rx.Component:
    return rx.el.li(
        rx.el.span(state_icon(line.state, 20), class_name="mt-0.5 shrink-0"),
        rx.el.div(
            rx.el.div(
                rx.el.h3(line.name, class_name="font-semibold"),
                rx.el.span(rx.match(line.state, *_WORDS.items(), ""), class_name="muted text-xs font-semibold"),
                class_name="flex flex-wrap items-baseline gap-x-3",
            ),
            rx.el.p(line.text, class_name="muted mt-0.5 break-words"),
            class_name="min-w-0 flex-1",
        ),
        key=line.name,
        class_name="flex items-start gap-3 py-3",
    )
