"""The contact page: the support chat and an e-mail address, as far as they are set."""

import reflex as rx

from components.layout.navigation import SUPPORT_PATH
from components.layout.text_page import bullets, chapter, link, reading
from components.ui.button import link_button
from components.ui.card import card, card_title
from locales import _
from settings import settings


def _support() -> tuple[rx.Component, ...]:
    """Return the card of the support chat, if there is one."""
    if not settings().support_invite:
        return ()
    return (
        card(
            card_title(_("Support chat"), _("For questions about setting up, rules and roles. Others may read along.")),
            link_button(_("Open Discord"), SUPPORT_PATH, kind="primary", leaves_app=True),
        ),
    )


def _mail() -> tuple[rx.Component, ...]:
    """Return the card of the e-mail address; with neither address nor support chat, a card that says so."""
    if address := settings().contact_address:
        return (
            card(
                card_title(_("E-mail"), _("For everything about your data, and for security reports.")),
                link(address, f"mailto:{address}"),
                class_name="break-words",
            ),
        )
    if settings().support_invite:
        return ()
    said = _("The person who runs this installation has set neither an e-mail address nor a support chat.")
    return (card(card_title(_("No address yet"), said)),)


def contact() -> rx.Component:
    """Return the page /contact."""
    return reading(
        _("Contact"),
        _("How to reach the people behind {product}.").format(product=settings().product_name),
        rx.el.div(*_support(), *_mail(), class_name="grid grid-cols-1 gap-5 sm:grid-cols-2"),
        chapter(
            _("What to tell us"),
            bullets(
                (
                    _("The name or ID of the Discord server."),
                    _("The rule, and the role that you expected."),
                    _("When it started, and what the screen shows."),
                )
            ),
            _("Never send a seed phrase, a private key, a password or a bot token. We never ask for them."),
        ),
        chapter(_("Answers without waiting"), link(_("The help center"), "/help-center")),
    )
