"""The Verification channel tab: the channel where members verify wallets, and the channel for alerts."""

import reflex as rx

from components.pages.server.panel import panel_card
from components.pages.server.tab_outlines import once_loaded
from components.ui.button import button
from components.ui.card import card, card_title
from components.ui.effects.texts import sentence
from components.ui.field import select_field
from components.ui.placeholders import empty, skeleton
from locales import _
from settings import settings
from state.server.channels import CHECK, CREATE, REPAIR, ChannelOption, ChannelsState
from state.server.first_steps import FirstStepsState


def channels_tab() -> rx.Component:
    """Return the verification channel, the log channel, and the panel below them."""
    return once_loaded(
        ChannelsState,
        ChannelsState.load,
        rx.el.div(_channel(), _log(), panel_card(), class_name="grid grid-cols-1 items-start gap-5 lg:grid-cols-2"),
        rx.el.div(skeleton("h-64"), skeleton("h-64"), class_name="grid grid-cols-1 gap-5 lg:grid-cols-2"),
    )


def _channel() -> rx.Component:
    return card(
        card_title(
            _("Verification channel"),
            _("Members read here, press Verify and never have to leave Discord. They cannot write in it."),
        ),
        rx.cond(ChannelsState.faults, _wrong(), rx.cond(ChannelsState.name != "", _right(), _none())),
        rx.el.p(
            sentence(
                _("The command {command} does the same inside Discord, for members with the permission Manage Server."),
                command=rx.el.code("/setup", class_name="code font-semibold"),
            ),
            class_name="muted mt-5 text-sm",
        ),
    )


def _none() -> rx.Component:
    return empty(
        "hash",
        _("No verification channel yet"),
        _("{bot} creates #verify with one message and its buttons: Verify, My roles and Re-check.").format(
            bot=settings().bot_name
        ),
        _repair(CREATE, _("Create channel"), _("Creating...")),
    )


def _wrong() -> rx.Component:
    return rx.el.div(
        rx.el.ul(
            rx.foreach(
                ChannelsState.faults,
                lambda fault: rx.el.li(
                    rx.icon("triangle-alert", size=20, class_name="mt-0.5 shrink-0 text-warning", aria_hidden="true"),
                    rx.el.span(fault),
                    key=fault,
                    class_name="flex gap-3",
                ),
            ),
            class_name="mb-5 grid grid-cols-1 gap-3",
        ),
        _repair(REPAIR, _("Repair channel"), _("Repairing...")),
    )


def _right() -> rx.Component:
    return rx.el.div(
        rx.el.p(
            rx.icon("circle-check", size=20, class_name="mt-0.5 shrink-0 text-success", aria_hidden="true"),
            sentence(
                _("{channel} is there, its panel is up to date, and its permissions are right."),
                channel=rx.el.span(f"#{ChannelsState.name}", class_name="font-semibold"),
            ),
            class_name="mb-5 flex gap-3 break-words",
            role="status",
        ),
        _repair(CHECK, _("Check again"), _("Checking...")),
    )


def _repair(what: str, label: str, busy: str) -> rx.Component:
    primary = what != CHECK
    return button(
        label,
        kind="primary" if primary else "plain",
        icon="wrench" if primary else "refresh-cw",
        busy=ChannelsState.working,
        busy_label=busy,
        on_click=[ChannelsState.repair(what), FirstStepsState.load],
    )


def _log() -> rx.Component:
    return card(
        card_title(
            _("Log channel"),
            _(
                "Paused rules, held-back removals, providers that are down and a broken role order are reported here: "
                "once at the start, once at the end. Nobody is mentioned."
            ),
        ),
        rx.el.div(
            select_field(
                _("Post alerts in"),
                "logChannel",
                rx.el.option(_("No channel"), value=""),
                rx.foreach(ChannelsState.options, channel_option),
                value=ChannelsState.chosen,
                on_change=ChannelsState.choose,
                hint=_("A first message shows that the bot may write there."),
            ),
            button(
                _("Save"),
                kind="primary",
                busy=ChannelsState.saving,
                busy_label=_("Saving..."),
                disabled=ChannelsState.chosen == ChannelsState.log_channel_id,
                on_click=ChannelsState.save,
                class_name="self-start",
            ),
            class_name="flex flex-col gap-4",
        ),
    )


def channel_option(option: rx.vars.ObjectVar[ChannelOption]) -> rx.Component:
    """Return a channel as an option of a list to choose from."""
    return rx.el.option(f"#{option.name}", value=option.id, key=option.id)
