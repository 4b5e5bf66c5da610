"""Error screens: an unknown page, and a failed sign-in."""

import reflex as rx

from components.layout.frame import member_frame, of_audience, shared_frame
from components.layout.navigation import CONNECT_PATH, LOGIN_PATH
from components.ui.button import link_button
from components.ui.placeholders import empty
from locales import _
from settings import settings
from state.public.error_pages import AUTH_FAILED, NOT_CONFIGURED, ProblemState


def not_found() -> rx.Component:
    """Return the members' screen at an unknown path."""
    return member_frame(
        rx.el.div(
            rx.icon("compass", size=56, class_name="mx-auto text-primary", aria_hidden="true"),
            rx.el.h1(_("404 Page Not Found"), class_name="mt-4 text-2xl font-bold"),
            rx.el.p(
                _("The page you're looking for doesn't exist on {product}.").format(product=settings().product_name),
                class_name="muted mt-2",
            ),
            link_button(_("Back to Dashboard"), "/dashboard", kind="primary", class_name="mt-6"),
            class_name="py-16 text-center",
        )
    )


def oauth_error() -> rx.Component:
    """Return the authentication error page; `error` in the URL chooses the message.

    The way to fix it is a page for visitors and operators, so people who are logged in get no link to it.
    """
    return shared_frame(
        rx.el.section(
            empty(
                "circle-alert",
                _("Authentication Error"),
                # Until the socket connects the document shows one of the two.
                rx.cond(
                    ProblemState.sentence != "",
                    rx.el.span(ProblemState.sentence),
                    rx.fragment(
                        rx.el.span(_(AUTH_FAILED), class_name="for-failed-login"),
                        rx.el.span(_(NOT_CONFIGURED), class_name="for-other-errors"),
                    ),
                ),
                of_audience(_visitors_ways, _members_ways),
                link_button(_("Back to Home"), "/"),
                whole_screen=True,
            ),
            class_name="surface w-full max-w-lg p-6",
        ),
        class_name="tide grid grid-cols-1 place-items-center px-4 py-16",
    )


def _visitors_ways() -> rx.Component:
    fix = link_button(_("How to fix this"), "/oauth-fix") if settings().operator_pages else rx.fragment()
    return rx.fragment(link_button(_("Try Again"), LOGIN_PATH, kind="primary", leaves_app=True), fix)


def _members_ways() -> rx.Component:
    return link_button(_("Try Again"), CONNECT_PATH, kind="primary", leaves_app=True)
