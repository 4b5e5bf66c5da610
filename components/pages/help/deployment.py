"""Operator guides for production: two guides, the deployment status, and hosting on Replit."""

import reflex as rx

from components.layout.navigation import LOGIN_PATH
from components.layout.reading import bullets, chapter, code, link, reading, sentence, steps
from components.pages.help.oauth_help import (
    CALLBACK_PATH,
    DEVELOPER_PORTAL,
    ENVIRONMENT,
    SETUP_PATH,
    callback_card,
    callback_line,
    callback_warning,
    environment_chapter,
    refused_chapter,
)
from components.ui.badge import Tone, badge
from components.ui.button import link_button
from components.ui.card import card, card_title
from components.ui.copy import copyable
from components.ui.effects.health import health_line
from settings import settings

_NAME, _BOT = settings().product_name, settings().bot_name
STAGING_CALLBACK = f"{settings().staging_url.rstrip('/')}{CALLBACK_PATH}"
PROGRESS: tuple[tuple[str, str, str, str], ...] = (
    ("backend", "Backend API deployment", "The processes run and /health answers.", "in-progress"),
    ("database", "Database configuration", "DATABASE_URL names a PostgreSQL with backups.", "pending"),
    ("domain", "Custom domain setup", "DNS leads to the host, and PUBLIC_URL is that address.", "pending"),
    ("oauth", "Discord OAuth update", "The callback URL of that address is registered with Discord.", "pending"),
)
_TONES: dict[str, Tone] = {"completed": "good", "in-progress": "info", "pending": "neutral"}


def production_setup() -> rx.Component:
    """Return the page /production-setup."""
    return reading(
        "Production Setup",
        f"How {_NAME} goes from the sandbox to real servers.",
        callback_card(),
        chapter(
            "In five steps",
            steps(
                (
                    ("Create a Discord application", sentence(
                        "In the ", link("Developer Portal", DEVELOPER_PORTAL), ". On its Bot page, create the token "
                        "and turn on Server Members Intent.")),
                    ("Register the callback", sentence(
                        "Under OAuth2, add ", code(CALLBACK_PATH), " on your domain as a redirect. The scopes are ",
                        code("identify"), " and ", code("guilds"), ".")),
                    ("Set the environment", "The settings below. With only some of Discord's credentials the start "
                     "is refused, and the message names what is missing."),
                    ("Put a proxy with TLS in front", "It has to pass WebSockets on, and the Host header as it came."),
                    ("Start it, then log in", sentence("The ", link("deployment status", "/deployment-status"),
                     " page shows whether the backend answers.")),
                )
            ),
        ),
        environment_chapter(),
        refused_chapter(),
        rx.el.div(
            link_button("Setup Guide", SETUP_PATH, kind="primary"),
            link_button("Return to Home", "/", kind="quiet"),
            class_name="flex flex-wrap gap-3",
        ),
    )  # fmt: skip


def product_setup() -> rx.Component:
    """Return both callback URLs, and six steps to register them."""
    return reading(
        f"{_NAME} Setup",
        "Register both callback URLs with Discord, and login works in production and in staging.",
        card(
            card_title("Production callback URL", "Built from the host that you opened this page under."),
            callback_line(),
            callback_warning(),
        ),
        card(card_title("Staging callback URL"), copyable(STAGING_CALLBACK)),
        chapter(
            "Six steps",
            steps(
                (
                    ("Open the Developer Portal", link("discord.com/developers/applications", DEVELOPER_PORTAL)),
                    ("Select your application", f"The one whose bot is {_BOT}."),
                    ("Go to OAuth2, General", "The redirects are listed there."),
                    ("Clear old redirects", "Those that name a host you no longer use."),
                    ("Add both callback URLs", "Exactly as above, with no slash at the end."),
                    ("Save", "Discord applies them at once."),
                )
            ),
        ),
        environment_chapter(),
        rx.el.div(
            link_button("Test Discord Login", LOGIN_PATH, kind="primary", leaves_app=True),
            link_button("Return to Home", "/"),
            class_name="flex flex-wrap gap-3",
        ),
    )


def deployment_status() -> rx.Component:
    """Return the backend's health and the fixed list of deployment steps."""
    return reading(
        "Deployment Status",
        "The first card is checked every five seconds. The list below it is a fixed reminder.",
        card(card_title("Backend"), health_line()),
        card(
            card_title("Progress"),
            rx.el.ol(*[_item(*item) for item in PROGRESS], class_name="flex flex-col gap-4"),
        ),
        chapter(
            "Environment variable checklist",
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
            link_button("Setup Guide", SETUP_PATH, kind="primary"),
            *_hosting(),
            link_button("Discord Developer Portal", DEVELOPER_PORTAL, target="_blank", rel="noopener"),
            link_button("Return Home", "/", kind="quiet"),
            class_name="flex flex-wrap gap-3",
        ),
    )


def _hosting() -> tuple[rx.Component, ...]:
    """Return the link to the hosting dashboard, if one is set."""
    url = settings().hosting_dashboard
    return (link_button("Hosting dashboard", url, target="_blank", rel="noopener"),) if url else ()


def _item(name: str, title: str, text: str, status: str) -> rx.Component:
    return rx.el.li(
        rx.el.div(
            rx.el.h3(title, class_name="font-semibold"), rx.el.p(text, class_name="muted text-sm"), class_name="min-w-0"
        ),
        rx.el.span(badge(status, _TONES[status]), class_name="shrink-0 whitespace-nowrap"),
        id=f"progress-{name}",
        class_name="flex items-start justify-between gap-4",
    )


def replit_deployment() -> rx.Component:
    """Return the guide for a deployment on Replit."""
    return reading(
        "Replit Deployment",
        f"How to find a {_NAME} that runs on Replit, test it and give it a domain.",
        chapter(
            "Find the deployment",
            "Open the Repl, then its Deployments tab. The deployment's address is at the top, its logs below.",
        ),
        chapter(
            "Test the health endpoint",
            sentence("Open ", code("/health"), " on that address. A running backend answers with the status ",
                     code("healthy"), " and a timestamp; one that is still starting answers 503."),
        ),
        chapter(
            "Update the OAuth callback",
            sentence("Set ", code("PUBLIC_URL"), " to the address that people will open, and register ",
                     code(CALLBACK_PATH), " on it in the ", link("Developer Portal", DEVELOPER_PORTAL),
                     " under OAuth2."),
        ),
        chapter(
            "Set the DNS",
            "A common layout has two names:",
            bullets(
                (
                    sentence("the main domain, such as ", code("example.com"), ", for a marketing site of your own;"),
                    sentence("a subdomain, such as ", code("api.example.com"), f", for the backend. All of {_NAME}'s "
                             "screens and calls are served there, so this one is ", code("PUBLIC_URL"), "."),
                )
            ),
            "Point the subdomain at the deployment with the record that the host names, and wait until it resolves "
            "before you log in.",
        ),
        rx.el.div(
            link_button("Deployment status", "/deployment-status", kind="primary"),
            link_button("Return Home", "/", kind="quiet"),
            class_name="flex flex-wrap gap-3",
        ),
    )  # fmt: skip
