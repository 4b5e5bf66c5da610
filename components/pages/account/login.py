"""The login card."""

import reflex as rx

from components.layout.frame import visitor_frame
from components.layout.navigation import LOGIN_PATH
from components.ui.brand import mark
from components.ui.button import link_button
from locales import _
from settings import settings


def login() -> rx.Component:
    """Return the card with its one button."""
    return visitor_frame(
        rx.el.section(
            mark("size-12 mx-auto"),
            rx.el.h1(
                _("Welcome to {product}").format(product=settings().product_name), class_name="mt-4 text-2xl font-bold"
            ),
            rx.el.p(
                _(
                    "Log in with Discord to manage your servers and verify your wallets. We ask Discord who you are "
                    "and which servers you are in."
                ),
                class_name="muted mt-2",
            ),
            link_button(
                _("Login with Discord"), LOGIN_PATH, kind="primary", leaves_app=True, class_name="btn-lg mt-6 w-full"
            ),
            class_name="surface w-full max-w-md p-8 text-center",
        ),
        class_name="tide grid grid-cols-1 place-items-center px-4 py-16",
    )
