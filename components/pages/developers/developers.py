"""The Developers tab: the webhook, and the API tokens."""

import reflex as rx

from components.pages.developers.api_token_card import tokens_card
from components.pages.developers.webhook_card import webhook_card
from components.pages.server.tab_outlines import once_loaded
from components.ui.effects.texts import sentence
from components.ui.placeholders import skeleton
from locales import _
from state.server.api_tokens import ApiTokensState


def developers_tab() -> rx.Component:
    """Return the two cards, and a link to the description of the calls."""
    return once_loaded(
        ApiTokensState,
        ApiTokensState.load,
        rx.el.div(
            webhook_card(),
            tokens_card(),
            rx.el.p(
                sentence(
                    _("All calls are described at {page}."),
                    page=rx.el.a("/api/docs", href="/api/docs", class_name="link font-medium", reload_document=True),
                ),
                class_name="muted text-sm",
            ),
            class_name="grid grid-cols-1 items-start gap-5",
        ),
        rx.el.div(skeleton("h-64"), skeleton("h-64"), class_name="grid grid-cols-1 gap-5"),
    )
