"""The panel's card on the Verification channel tab: its fields, and a preview that looks as in Discord."""

from typing import Any

import reflex as rx

from components.ui.button import button
from components.ui.card import card, card_title
from components.ui.effects.texts import filled
from components.ui.field import field, select_field, text_area, text_input
from locales import LANGUAGES, _, listed, own_name
from settings import settings
from state.core.timing import PANEL_DEBOUNCE_MILLISECONDS
from state.server.channels import ChannelsState
from state.server.panel import BUTTON, COLOR, LANGUAGE, TEXT, TITLE, BlockView, PanelState, RunView

PLACEHOLDERS = listed(("{server}", "{bot}", "{button}"))
_KINDS = {
    "h1": "discord-h1", "h2": "discord-h2", "h3": "discord-h3", "small": "discord-small", "quote": "discord-quote",
    "code": "discord-fence",
}  # fmt: skip


def panel_card() -> rx.Component:
    """Return the fields beside the preview."""
    return card(
        card_title(
            _("Panel"),
            _("The message in the verification channel. Saving also changes the message that is already posted."),
        ),
        rx.el.div(
            rx.el.form(
                select_field(
                    _("Language"),
                    LANGUAGE,
                    *(rx.el.option(own_name(one), value=one, lang=one) for one in LANGUAGES),
                    value=PanelState.language,
                    on_change=PanelState.choose_language,
                    hint=_("Of the default texts, the other buttons and alerts. Your own texts stay as they are."),
                ),
                field(
                    _("Title"), _line(TITLE, PanelState.title, PanelState.enter_title), error=PanelState.faults[TITLE]
                ),
                field(
                    _("Text"),
                    text_area(
                        TEXT,
                        key=f"{TEXT}{PanelState.key}",
                        default_value=PanelState.text,
                        rows="10",
                        lang=PanelState.language,
                        on_change=PanelState.enter_text.debounce(PANEL_DEBOUNCE_MILLISECONDS),
                    ),
                    hint=filled(
                        # Translators: {left} is a text such as "120 of 4096 characters".
                        _("{left}. You can use Discord's markdown and the placeholders {placeholders}."),
                        left=PanelState.left,
                        placeholders=PLACEHOLDERS,
                    ),
                    error=PanelState.faults[TEXT],
                ),
                rx.el.div(
                    field(
                        _("Button label"),
                        _line(BUTTON, PanelState.button, PanelState.enter_button),
                        error=PanelState.faults[BUTTON],
                    ),
                    field(
                        _("Colour"),
                        rx.el.input(
                            id=COLOR,
                            name=COLOR,
                            type="color",
                            key=f"{COLOR}{PanelState.key}",
                            default_value=PanelState.color.lower(),
                            on_change=PanelState.choose_color.debounce(PANEL_DEBOUNCE_MILLISECONDS),
                            class_name="input cursor-pointer p-1",
                        ),
                        error=PanelState.faults[COLOR],
                    ),
                    class_name="grid grid-cols-[2fr_1fr] gap-4",
                ),
                rx.el.div(
                    button(_("Use the default texts"), kind="quiet", on_click=PanelState.restore),
                    button(
                        _("Save panel"),
                        kind="primary",
                        type="submit",
                        busy=PanelState.saving,
                        busy_label=_("Saving..."),
                    ),
                    class_name="flex flex-wrap justify-end gap-3",
                ),
                on_submit=[PanelState.save, ChannelsState.load],
                class_name="flex min-w-0 flex-col gap-4",
            ),
            rx.el.div(
                rx.el.h3(_("Preview"), class_name="mb-1.5 text-sm font-semibold"), _preview(), class_name="min-w-0"
            ),
            class_name="grid grid-cols-1 gap-6 lg:grid-cols-2",
        ),
        class_name="lg:col-span-2",
    )


def _line(name: str, value: str, enter: Any) -> rx.Component:
    return text_input(
        name,
        key=f"{name}{PanelState.key}",
        default_value=value,
        lang=PanelState.language,
        on_change=enter.debounce(PANEL_DEBOUNCE_MILLISECONDS),
    )


def _preview() -> rx.Component:
    """Return the message as Discord shows it in its dark theme."""
    bot = settings().bot_name
    return rx.el.div(
        rx.el.div(
            rx.el.span(bot[0], class_name="discord-avatar", aria_hidden="true"),
            rx.el.div(
                rx.el.p(rx.el.strong(bot), rx.el.span("APP", class_name="discord-app"), class_name="mb-1"),
                rx.el.div(
                    rx.el.p(_runs(PanelState.shown_title), class_name="font-semibold"),
                    rx.el.div(rx.foreach(PanelState.shown, _block), class_name="mt-2 text-sm"),
                    rx.el.p(PanelState.safe_name, class_name="mt-3 text-sm font-semibold"),
                    rx.el.div(rx.foreach(PanelState.safe, _block), class_name="text-sm"),
                    class_name="discord-embed",
                    style={"border_inline_start_color": PanelState.color},
                ),
                rx.el.div(
                    rx.el.span(PanelState.button, class_name="discord-button discord-button-primary"),
                    rx.el.span(PanelState.my_roles, class_name="discord-button"),
                    rx.el.span(PanelState.recheck, class_name="discord-button"),
                    class_name="mt-2 flex flex-wrap gap-2",
                ),
                class_name="min-w-0 flex-1",
            ),
            lang=PanelState.language,
            class_name="flex gap-3",
        ),
        class_name="discord-message",
        role="figure",
        aria_label=_("The panel as Discord will show it"),
    )


def _block(block: rx.vars.ObjectVar[BlockView]) -> rx.Component:
    line = _runs(block.runs.to(list[RunView]))
    plain = rx.match(
        block.kind,
        *((kind, rx.el.div(line, class_name=look)) for kind, look in _KINDS.items()),
        rx.el.div(line, class_name="whitespace-pre-wrap break-words"),
    )
    mark = rx.cond(block.kind == "number", f"{block.mark}.", "•")
    item = rx.el.div(
        rx.el.span(mark, class_name="shrink-0"),
        rx.el.span(line, class_name="min-w-0 break-words"),
        class_name="flex gap-2",
        style={"padding_inline_start": f"{block.depth.to(int) * 1.25}rem"},
    )
    return rx.cond((block.kind == "bullet") | (block.kind == "number"), item, plain)


def _runs(found: rx.Var[list[RunView]] | list[RunView]) -> rx.Component:
    return rx.fragment(
        rx.foreach(
            found, lambda run: rx.cond(run.kind == "break", rx.el.br(), rx.el.span(run.text, class_name=run.look))
        )
    )
