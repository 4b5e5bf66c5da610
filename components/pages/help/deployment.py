"""Operator guides for production: a guide, the deployment status, and hosting on Replit."""

import reflex as rx

from components.layout.text_page import bullets, chapter, code, link, reading, steps
from components.pages.help.health_line import health_line
from components.pages.help.oauth_help import (
    DEVELOPER_PORTAL,
    ENVIRONMENT,
    SETUP_PATH,
    callback_card,
    environment_chapter,
    refused_chapter,
)
from components.ui.badge import Tone, badge
from components.ui.button import link_button
from components.ui.card import card, card_title
from components.ui.effects.texts import sentence
from locales import N_, _
from settings import CALLBACK_PATH, settings

_NAME, _BOT = settings().product_name, settings().bot_name
PROGRESS: tuple[tuple[str, str, str, str], ...] = (
    ("backend", _("Backend API deployment"), _("The processes run and /health answers."), N_("in-progress")),
    ("database", _("Database configuration"), _("DATABASE_URL names a PostgreSQL with backups."), N_("pending")),
    ("domain", _("Custom domain setup"), _("DNS leads to the host, and PUBLIC_URL is that address."), N_("pending")),
    (
        "oauth",
        _("Discord OAuth update"),
        _("The callback URL of that address is registered with Discord."),
        N_("pending"),
    ),
)
_TONES: dict[str, Tone] = {"completed": "good", "in-progress": "info", "pending": "neutral"}


def production_setup() -> rx.Component:
    """Return the page /production-setup."""
    return reading(
        _("Production Setup"),
        _("How {product} goes from the sandbox to real servers.").format(product=_NAME),
        callback_card(),
        chapter(
            _("In five steps"),
            steps(
                (
                    (_("Create a Discord application"), sentence(
                        _("Create it in the {portal}. On its Bot page, create the token and turn on Server Members "
                          "Intent."),
                        portal=link(_("Developer Portal"), DEVELOPER_PORTAL))),
                    (_("Register the callback"), sentence(
                        _("Under OAuth2, add {callback} on your domain as a redirect. The scopes are {first} and "
                          "{second}."),
                        callback=code(CALLBACK_PATH), first=code("identify"), second=code("guilds"))),
                    (_("Set the environment"), _(
                        "The settings below. With only some of Discord's credentials the start is refused, and the "
                        "message names what is missing.")),
                    (_("Put a proxy with TLS in front"),
                     _("It has to pass WebSockets on, and the Host header as it came.")),
                    (_("Start it, then log in"), sentence(
                        _("The {page} page shows whether the backend answers."),
                        page=link(_("deployment status"), "/deployment-status"))),
                )
            ),
        ),
        environment_chapter(),
        refused_chapter(),
        rx.el.div(
            link_button(_("Setup Guide"), SETUP_PATH, kind="primary"),
            link_button(_("Return to Home"), "/", kind="quiet"),
            class_name="flex flex-wrap gap-3",
        ),
    )  # fmt: skip


def deployment_status() -> rx.Component:
    """Return the backend's health and the fixed list of deployment steps."""
    return reading(
        _("Deployment Status"),
        _("The first card is checked every five seconds. The list below it is a fixed reminder."),
        card(card_title(_("Backend")), health_line()),
        card(
            card_title(_("Progress")), rx.el.ol(*[_item(*item) for item in PROGRESS], class_name="flex flex-col gap-4")
        ),
        chapter(
            _("Environment variable checklist"),
            rx.el.ul(
                *[
                    rx.el.li(
                        rx.el.label(
                            rx.el.input(type="checkbox", class_name="mt-1 size-4 shrink-0 accent-primary"),
                            rx.el.span(code(name), " ", text, class_name="min-w-0 break-words"),
                            class_name="flex items-start gap-3",
                        )
                    )
                    for name, text in ENVIRONMENT
                ],
                class_name="flex flex-col gap-2.5",
            ),
        ),
        rx.el.div(
            link_button(_("Setup Guide"), SETUP_PATH, kind="primary"),
            *_hosting(),
            link_button(_("Discord Developer Portal"), DEVELOPER_PORTAL, target="_blank", rel="noopener"),
            link_button(_("Return Home"), "/", kind="quiet"),
            class_name="flex flex-wrap gap-3",
        ),
    )


def _hosting() -> tuple[rx.Component, ...]:
    """Return the link to the hosting dashboard, if one is set."""
    url = settings().hosting_dashboard
    return (link_button(_("Hosting dashboard"), url, target="_blank", rel="noopener"),) if url else ()


def _item(name: str, title: str, text: str, status: str) -> rx.Component:
    return rx.el.li(
        rx.el.div(
            rx.el.h3(title, class_name="font-semibold"), rx.el.p(text, class_name="muted text-sm"), class_name="min-w-0"
        ),
        rx.el.span(badge(_(status), _TONES[status]), class_name="shrink-0 whitespace-nowrap"),
        id=f"progress-{name}",
        class_name="flex items-start justify-between gap-4",
    )


def replit_deployment() -> rx.Component:
    """Return the guide for a deployment on Replit."""
    return reading(
        _("Replit Deployment"),
        _("How to find a {product} that runs on Replit, test it and give it a domain.").format(product=_NAME),
        chapter(
            _("Find the deployment"),
            _("Open the Repl, then its Deployments tab. The deployment's address is at the top, its logs below."),
        ),
        chapter(
            _("Test the health endpoint"),
            sentence(
                _("Open {path} on that address. A running backend answers with the status {status} and a timestamp; "
                  "one that is still starting answers 503."),
                path=code("/health"), status=code("healthy"),
            ),
        ),
        chapter(
            _("Update the OAuth callback"),
            sentence(
                _("Set {setting} to the address that people will open, and register {callback} on it in the {portal} "
                  "under OAuth2."),
                setting=code("PUBLIC_URL"), callback=code(CALLBACK_PATH),
                portal=link(_("Developer Portal"), DEVELOPER_PORTAL),
            ),
        ),
        chapter(
            _("Set the DNS"),
            _("A common layout has two names:"),
            bullets(
                (
                    sentence(
                        _("the main domain, such as {domain}, for a marketing site of your own;"),
                        domain=code("example.com"),
                    ),
                    sentence(
                        _("a subdomain, such as {domain}, for the backend. All of {product}'s screens and calls are "
                          "served there, so this one is {setting}."),
                        domain=code("api.example.com"), product=_NAME, setting=code("PUBLIC_URL"),
                    ),
                )
            ),
            _(
                "Point the subdomain at the deployment with the record that the host names, and wait until it resolves "
                "before you log in."
            ),
        ),
        rx.el.div(
            link_button(_("Deployment status"), "/deployment-status", kind="primary"),
            link_button(_("Return Home"), "/", kind="quiet"),
            class_name="flex flex-wrap gap-3",
        ),
    )  # fmt: skip
