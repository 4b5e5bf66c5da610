"""The card with a server's webhook: its form, its secret, shown once, and the last deliveries."""

import reflex as rx

from components.pages.developers.api_token_card import switches
from components.ui.badge import state_icon
from components.ui.button import button
from components.ui.card import card, card_title
from components.ui.copy import shown_once
from components.ui.dialog import confirm
from components.ui.field import fault_of, text_field
from components.ui.placeholders import empty
from locales import _
from state.server.webhook import DELETE, NEW_SECRET, DeliveryRowView, WebhookState


def webhook_card() -> rx.Component:
    """Return the webhook, or how to set one."""
    return card(
        card_title(
            _("Webhook"),
            _(
                "Events of this server are posted to your program, each signed with a secret that only this server and "
                "the program know. An event that the program does not accept is retried for a day."
            ),
        ),
        rx.cond(WebhookState.secret != "", _shown_once()),
        rx.cond(WebhookState.editing, _form(), rx.cond(WebhookState.is_set, _set(), _none())),
        _question(),
    )


def _none() -> rx.Component:
    return empty(
        "webhook",
        _("No webhook"),
        _("Set the address of your program, and it hears of roles, rules and held-back removals within seconds."),
        button(_("Set a webhook"), icon="plus", on_click=WebhookState.edit),
    )


def _shown_once() -> rx.Component:
    said, copied = _("Copy the secret now. It is shown this once."), _("I have copied the secret")
    return shown_once(WebhookState.secret, said, _("Copy the secret"), copied, WebhookState.hide)


def _form() -> rx.Component:
    return rx.el.form(
        text_field(
            _("Address of your program"),
            "webhookUrl",
            value=WebhookState.typed,
            on_change=WebhookState.set_typed,
            placeholder="https://",
            input_mode="url",
            hint=_("It begins with https:// and answers within 10 seconds."),
            error=fault_of(WebhookState, "url"),
        ),
        switches("event", _("Events to post"), WebhookState),
        rx.el.div(
            button(_("Cancel"), kind="quiet", on_click=WebhookState.close_form),
            button(
                _("Save webhook"), kind="primary", type="submit", busy=WebhookState.saving, busy_label=_("Saving...")
            ),
            class_name="flex flex-wrap justify-end gap-3",
        ),
        on_submit=WebhookState.save,
        class_name="grid max-w-xl grid-cols-1 gap-5",
    )


def _set() -> rx.Component:
    return rx.el.div(
        rx.el.code(WebhookState.url, class_name="code break-all"),
        rx.el.ul(
            rx.foreach(
                WebhookState.events,
                lambda event: rx.el.li(event, key=event, class_name="rounded-full bg-base-200 px-3 py-0.5 text-sm"),
            ),
            class_name="mt-3 flex flex-wrap gap-2",
            aria_label=_("Events that are posted"),
        ),
        rx.cond(
            WebhookState.trouble != "",
            rx.el.p(
                rx.icon("triangle-alert", size=20, class_name="mt-0.5 shrink-0 text-warning", aria_hidden="true"),
                rx.el.span(WebhookState.trouble),
                class_name="mt-4 flex gap-3",
            ),
        ),
        rx.el.p(WebhookState.status, class_name="muted mt-3 text-sm"),
        rx.el.p(
            _("It belongs to the server: it goes on when the person who set it no longer runs the server."),
            class_name="muted mt-1 text-sm",
        ),
        rx.cond(WebhookState.overlap != "", rx.el.p(WebhookState.overlap, class_name="muted mt-1 text-sm")),
        rx.el.div(
            button(
                _("Send a test event"), icon="send", class_name="btn-sm", disabled=WebhookState.working,
                on_click=WebhookState.send_test,
            ),
            button(_("Change webhook"), icon="pencil", class_name="btn-sm", on_click=WebhookState.edit),
            button(
                _("Make a new secret"), kind="quiet", icon="key-round", class_name="btn-sm",
                disabled=WebhookState.working, on_click=WebhookState.ask(NEW_SECRET),
            ),
            button(
                _("Delete webhook"), kind="quiet", icon="trash-2", class_name="btn-sm", disabled=WebhookState.working,
                on_click=WebhookState.ask(DELETE),
            ),
            class_name="mt-5 flex flex-wrap gap-3",
        ),
        _deliveries(),
    )  # fmt: skip


def _deliveries() -> rx.Component:
    return rx.el.div(
        rx.el.div(
            rx.el.h3(_("Last deliveries"), class_name="font-semibold"),
            button(
                _("Refresh"), kind="quiet", icon="refresh-cw", class_name="btn-sm", on_click=WebhookState.read_again
            ),
            class_name="flex flex-wrap items-center justify-between gap-3",
        ),
        rx.cond(
            WebhookState.deliveries,
            rx.el.ul(rx.foreach(WebhookState.deliveries, _delivery), class_name="mt-2 divide-y divide-base-300"),
            rx.el.p(_("Nothing was posted yet."), class_name="muted mt-2 text-sm"),
        ),
        class_name="mt-6 border-t hairline pt-5",
    )


def _delivery(one: rx.vars.ObjectVar[DeliveryRowView]) -> rx.Component:
    return rx.el.li(
        rx.el.span(state_icon(one.tone, 18), class_name="mt-0.5 shrink-0"),
        rx.el.div(
            rx.el.p(
                rx.el.span(one.event, class_name="font-medium"),
                rx.el.span(one.state, class_name="text-sm"),
                rx.el.span(one.time, class_name="muted text-sm"),
                class_name="flex flex-wrap items-baseline gap-x-3",
            ),
            rx.cond(one.detail != "", rx.el.p(one.detail, class_name="muted break-words text-sm")),
            class_name="min-w-0 flex-1",
        ),
        key=one.id,
        class_name="flex items-start gap-3 py-2.5",
    )


def _question() -> rx.Component:
    deletes = WebhookState.asked == DELETE
    return confirm(
        is_open=WebhookState.asked != "",
        on_open_change=WebhookState.close_dialog,
        title=rx.cond(deletes, _("Delete the webhook?"), _("Make a new secret?")),
        text=rx.cond(
            deletes,
            _("Nothing is posted any more, and what waits is discarded."),
            _("For a day, deliveries are signed with both, so that you can change over without missing one."),
        ),
        cancel=button(_("Leave the webhook"), kind="quiet", on_click=WebhookState.close_dialog(False)),
        action=rx.cond(
            deletes,
            button(_("Yes, delete it"), kind="danger", on_click=WebhookState.confirm),
            button(_("Yes, make one"), kind="primary", on_click=WebhookState.confirm),
        ),
    )
