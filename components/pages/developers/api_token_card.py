"""The card with a server's API tokens: the list, the form for a new one, and the dialog before one is revoked."""

import reflex as rx

from components.ui.badge import badge
from components.ui.button import button
from components.ui.card import card, card_title
from components.ui.copy import shown_once
from components.ui.dialog import confirm
from components.ui.effects.texts import filled
from components.ui.field import fault_line, fault_of, select_field, switch, text_field
from components.ui.placeholders import empty
from locales import _, ngettext
from state.server.api_tokens import LIVES, ApiTokensState, TokenRowView
from state.server.webhook import WebhookState


def tokens_card() -> rx.Component:
    """Return the tokens, and the buttons to create and revoke them."""
    return card(
        card_title(
            _("API tokens"),
            _(
                "A program of yours calls the API with one. It reaches this server alone, does what its scopes allow, "
                "and stops while the person who made it does not run the server."
            ),
        ),
        rx.cond(ApiTokensState.token != "", _shown_once()),
        rx.cond(ApiTokensState.rows, _list(), rx.cond(ApiTokensState.is_open, rx.fragment(), _none())),
        rx.cond(ApiTokensState.is_open, _form(), rx.cond(ApiTokensState.rows, rx.el.div(_new(), class_name="mt-5"))),
        _question(),
    )


def _none() -> rx.Component:
    return empty(
        "key-round",
        _("No API tokens"),
        _("Make one for a script or a bot of your own that works with this server."),
        _new(),
    )


def _new() -> rx.Component:
    return button(_("New token"), icon="plus", on_click=ApiTokensState.open_form)


def _shown_once() -> rx.Component:
    said, copied = _("Copy the token now. It is shown this once."), _("I have copied the token")
    return shown_once(ApiTokensState.token, said, _("Copy the token"), copied, ApiTokensState.hide)


def _list() -> rx.Component:
    return rx.el.ul(
        rx.foreach(ApiTokensState.rows, _token), class_name="divide-y divide-base-300", aria_label=_("API tokens")
    )


def _token(row: rx.vars.ObjectVar[TokenRowView]) -> rx.Component:
    return rx.el.li(
        rx.el.div(
            rx.el.p(
                rx.el.span(row.name, class_name="break-words font-medium"),
                rx.el.code(f"{row.prefix}…", class_name="code text-sm"),
                rx.match(
                    row.state,
                    ("expired", badge(_("Expired"))),
                    ("stopped", badge(_("Stopped"), "warning")),
                    rx.fragment(),
                ),
                class_name="flex flex-wrap items-center gap-x-3 gap-y-1",
            ),
            rx.el.p(row.scopes, class_name="text-sm"),
            rx.el.p(row.origin, " · ", row.use, class_name="muted break-words text-sm"),
            class_name="min-w-0 flex-1 basis-60",
        ),
        button(
            _("Revoke"),
            kind="quiet",
            icon="trash-2",
            class_name="btn-sm max-sm:-ms-3",
            disabled=ApiTokensState.working,
            on_click=ApiTokensState.ask(row.id),
            aria_label=filled(_("Revoke the token {name}"), name=row.name),
        ),
        key=row.id,
        class_name="flex flex-wrap items-center gap-x-4 gap-y-2 py-3",
    )


def _form() -> rx.Component:
    return rx.el.form(
        text_field(
            _("Name of the token"),
            "tokenName",
            value=ApiTokensState.name,
            on_change=ApiTokensState.set_name,
            placeholder=_("Such as: nightly report"),
            error=fault_of(ApiTokensState, "name"),
        ),
        switches("scope", _("What it may do"), ApiTokensState),
        select_field(
            _("Expires after"),
            "tokenLife",
            *(
                rx.el.option(ngettext("{count} day", "{count} days", int(days)).format(count=days), value=days)
                for days in LIVES
            ),
            value=ApiTokensState.life,
            on_change=ApiTokensState.set_life,
            error=fault_of(ApiTokensState, "expiresAt"),
        ),
        rx.el.div(
            button(_("Cancel"), kind="quiet", on_click=ApiTokensState.close_form),
            button(
                _("Create token"),
                kind="primary",
                type="submit",
                busy=ApiTokensState.working,
                busy_label=_("Creating..."),
            ),
            class_name="flex flex-wrap justify-end gap-3",
        ),
        on_submit=ApiTokensState.create,
        class_name="mt-5 grid max-w-xl grid-cols-1 gap-5 border-t hairline pt-5",
    )


def switches(kind: str, title: str, form: type[ApiTokensState] | type[WebhookState]) -> rx.Component:
    """Return the switches of a form's scopes or events, below their title."""
    return rx.el.fieldset(
        rx.el.legend(title, class_name="mb-2 text-sm font-semibold"),
        rx.el.div(
            rx.foreach(
                form.choices,
                lambda one: switch(
                    f"{kind}-{one.key}",
                    one.label,
                    one.hint,
                    checked=one.chosen,
                    on_change=lambda chosen: form.choose(one.key, chosen),
                ),
            ),
            class_name="grid grid-cols-1 gap-3",
        ),
        fault_line(form, f"{kind}s"),
    )


def _question() -> rx.Component:
    return confirm(
        is_open=ApiTokensState.asked_id != 0,
        on_open_change=ApiTokensState.close_dialog,
        title=filled(_("Revoke the token “{name}”?"), name=ApiTokensState.asked_name),
        text=_("Programs that use it are refused at once. This cannot be undone."),
        cancel=button(_("Keep the token"), kind="quiet", on_click=ApiTokensState.close_dialog(False)),
        action=button(_("Revoke token"), kind="danger", on_click=ApiTokensState.revoke),
    )
