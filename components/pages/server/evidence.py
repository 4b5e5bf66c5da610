"""One requirement with its evidence, as an item of a list."""

import reflex as rx

from components.ui.answer_badge import answer_badge
from components.ui.effects.texts import sentence
from locales import _
from state.core.evidence import RequirementLineView


def requirement_line(line: rx.vars.ObjectVar[RequirementLineView], one_of_many: bool | rx.Var[bool]) -> rx.Component:
    """Return the requirement; one of many shows its own answer."""
    return rx.el.li(
        rx.el.div(
            rx.el.span(line.text, class_name="break-words"),
            rx.cond(one_of_many, answer_badge(line.outcome)),
            class_name="flex flex-wrap items-center gap-x-3",
        ),
        rx.el.p(line.amount, class_name="muted break-words"),
        rx.cond(line.seen != "", rx.el.p(line.seen, class_name="muted break-words")),
        rx.cond(
            line.wallet != "",
            rx.el.p(
                sentence(_("Wallet {address}"), address=rx.el.span(line.wallet, class_name="code")),
                class_name="muted break-words",
            ),
        ),
        class_name="text-sm",
    )
