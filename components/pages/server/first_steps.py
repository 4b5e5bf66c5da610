"""The checklist above the tabs of a new server: five steps, each with the button that leads to it."""

import reflex as rx

from components.ui.button import Kind, button, link_button
from components.ui.effects.every import every
from components.ui.effects.texts import filled
from locales import _
from state.core.timing import FIRST_STEPS_POLL_SECONDS
from state.dashboard.server_page import ServerPageState
from state.server.first_steps import BOT, CHANNEL, MEMBER, ORDER, RULE, FirstStepsState, StepView


def first_steps() -> rx.Component:
    """Return the checklist, refreshed while the page is visible, or nothing once every step is done."""
    count = rx.Var.create(FirstStepsState.steps).to(list).length()
    return rx.cond(
        count > 0,
        rx.el.section(
            every(FIRST_STEPS_POLL_SECONDS, FirstStepsState.load, seen_only=True),
            rx.el.div(
                rx.el.h2(_("First steps"), id="first-steps", class_name="text-lg font-semibold"),
                rx.el.p(
                    filled(_("{done} of {count} done"), done=FirstStepsState.done, count=count),
                    class_name="muted text-sm",
                    role="status",
                ),
                button(_("Hide"), kind="quiet", class_name="btn-sm ms-auto", on_click=FirstStepsState.hide),
                class_name="flex flex-wrap items-center gap-3",
            ),
            rx.el.ol(rx.foreach(FirstStepsState.steps, _step), class_name="mt-2 divide-y divide-base-300"),
            class_name="surface mb-6 p-5 sm:p-6",
            aria_labelledby="first-steps",
        ),
    )


def _step(step: rx.vars.ObjectVar[StepView]) -> rx.Component:
    return rx.el.li(
        rx.cond(
            step.done,
            rx.icon("circle-check", size=20, class_name="mt-0.5 shrink-0 text-success", aria_hidden="true"),
            rx.icon("circle", size=20, class_name="muted mt-0.5 shrink-0", aria_hidden="true"),
        ),
        rx.el.div(
            rx.el.h3(
                step.title,
                rx.el.span(" ", rx.cond(step.done, _("(done)"), _("(to do)")), class_name="sr-only"),
                class_name="font-semibold",
            ),
            # On a phone a finished step takes one line, because people came for the tab below.
            rx.el.p(step.text, class_name=rx.cond(step.done, "muted text-sm max-sm:hidden", "muted text-sm")),
            class_name="min-w-0 flex-1 basis-52",
        ),
        rx.cond(step.done, rx.fragment(), _way(step)),
        key=step.key,
        class_name=rx.cond(
            step.done, "flex flex-wrap items-start gap-3 py-3 max-sm:py-1.5", "flex flex-wrap items-start gap-3 py-3"
        ),
    )


def _way(step: rx.vars.ObjectVar[StepView]) -> rx.Component:
    """Return the button that does the step, or leads to where it is done; the next step's button stands out."""
    return rx.el.div(rx.cond(step.next, _button(step, "primary"), _button(step, "plain")))


def _button(step: rx.vars.ObjectVar[StepView], kind: Kind) -> rx.Component | rx.Var[rx.Component]:
    small = "btn-sm"
    return rx.match(
        step.key,
        (BOT, button(_("Invite Bot"), kind=kind, class_name=small, on_click=ServerPageState.invite)),
        (ORDER, _to_tab(_("How to fix it"), "health", kind)),
        (RULE, link_button(_("Add Rule"), ServerPageState.add_rule_url, kind=kind, class_name=small)),
        (CHANNEL, _to_tab(_("Open the tab"), "channel", kind)),
        (MEMBER, link_button(_("Verify a wallet"), "/wallet-verification", kind=kind, class_name=small)),
        rx.fragment(),
    )


def _to_tab(label: str, tab: str, kind: Kind) -> rx.Component:
    """Return the link to a tab, which also comes into view: the checklist above it can fill the window."""
    return link_button(
        label,
        f"{ServerPageState.config_url}&tab={tab}",
        kind=kind,
        class_name="btn-sm",
        prevent_scroll_reset=True,
        on_click=rx.scroll_to("tabs"),
    )
