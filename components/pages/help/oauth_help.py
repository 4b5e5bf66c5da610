"""Four operator pages about Discord's sign-in: set-up, repair, debug and a test."""

import reflex as rx

from components.layout.navigation import LOGIN_PATH
from components.layout.reading import bullets, chapter, code, link, reading, sentence, steps
from components.ui.badge import badge
from components.ui.button import link_button
from components.ui.card import card, card_title
from components.ui.copy import copyable
from components.ui.empty import skeleton
from settings import settings
from state.core.session import MEMBER, SessionState
from state.help.operator import OperatorState, SettingPresence

DEVELOPER_PORTAL = "https://discord.com/developers/applications"
CALLBACK_PATH = "/api/auth/discord/callback"
SETUP_PATH = f"/{settings().product_name.lower().replace(' ', '-')}-setup"
ENVIRONMENT = (
    ("DISCORD_CLIENT_ID", "Client id: the application's id, on its OAuth2 page."),
    ("DISCORD_CLIENT_SECRET", "Client secret, on the same page."),
    ("DISCORD_BOT_TOKEN", "Bot token, on the Bot page."),
    ("SECRET_KEY", "Session secret: a long random text; SESSION_SECRET is read as well."),
    ("DATABASE_URL", "Database URL of a PostgreSQL. Empty means the embedded one."),
    ("PUBLIC_URL", "Custom domain (optional): the address that people open."),
)


def oauth_setup() -> rx.Component:
    """Return the guide that sets the login up."""
    return reading(
        "Discord OAuth Setup",
        "What has to be registered with Discord before anybody can log in.",
        callback_card(),
        chapter(
            "Register the callback",
            steps(
                (
                    ("Open the Developer Portal", link("discord.com/developers/applications", DEVELOPER_PORTAL)),
                    ("Select your application, then OAuth2", "Or create an application first."),
                    ("Add the redirect", sentence("It ends in ", code(CALLBACK_PATH), " and is shown above in full.")),
                    ("Save", "Discord applies it at once."),
                )
            ),
        ),
        chapter("Scopes", sentence("Login asks for ", code("identify"), " and ", code("guilds"), ", nothing else.")),
        environment_chapter(),
        _ways_on(),
    )


def oauth_fix() -> rx.Component:
    """Return what to check when Discord refuses a login."""
    return reading(
        "Fix Discord OAuth",
        "When logging in fails, the redirect URL is nearly always the reason.",
        callback_card(),
        refused_chapter(),
        chapter(
            "What to check",
            bullets(
                (
                    sentence("In the ", link("Developer Portal", DEVELOPER_PORTAL), " under OAuth2, the redirect is "
                             "exactly the callback URL above: scheme, host, port and path."),
                    sentence(code("PUBLIC_URL"), " is the address that people open, without a path."),
                    sentence("The scopes are ", code("identify"), " and ", code("guilds"), "."),
                    sentence(code("DISCORD_CLIENT_ID"), " and ", code("DISCORD_CLIENT_SECRET"),
                             " belong to the same application."),
                    "The product was restarted after a change of settings.",
                )
            ),
        ),
        environment_chapter(),
        _ways_on(),
    )  # fmt: skip


def oauth_debug() -> rx.Component:
    """Return the settings that sign-in uses now."""
    return reading(
        "OAuth Debug",
        "The settings that login uses now. Values are never shown.",
        callback_card(),
        _present_card(),
        refused_chapter(),
        _ways_on(),
    )


def test_auth() -> rx.Component:
    """Return whether this browser is signed in, and the settings that sign-in uses."""
    return reading(
        "Test Authentication",
        "Whether this browser is logged in, and which settings login uses.",
        card(
            card_title("This browser"),
            rx.cond(
                SessionState.audience == MEMBER,
                rx.el.p("Logged in as ", rx.el.strong(SessionState.name), "."),
                rx.el.p("Not logged in."),
            ),
        ),
        callback_card(),
        _present_card(),
        rx.el.div(link_button("Test Discord Login", LOGIN_PATH, kind="primary", leaves_app=True)),
    )


def callback_card() -> rx.Component:
    """Return the callback URL of the current host, with a warning if sign-in uses another."""
    return card(
        card_title("Callback URL", "Built from the host that you opened this page under."),
        callback_line(),
        callback_warning(),
    )


def callback_line() -> rx.Component:
    """Return the callback URL with its copy button."""
    return rx.cond(OperatorState.callback_url != "", copyable(OperatorState.callback_url), skeleton("h-11"))


def callback_warning() -> rx.Component:
    """Return the warning for a host other than the one in PUBLIC_URL."""
    return rx.cond(
        OperatorState.used_callback_url != "",
        rx.el.p(
            "Careful: login uses PUBLIC_URL, so Discord gets another callback URL: ",
            rx.el.code(OperatorState.used_callback_url, class_name="code break-all"),
            ". Register that one, or set PUBLIC_URL to this host.",
            class_name="mt-3 rounded-field bg-warning/12 p-3 font-medium text-warning",
            role="alert",
        ),
    )


def refused_chapter() -> rx.Component:
    """Return an explanation of the browser's error page."""
    return chapter(
        "If a host refused to connect",
        sentence(
            "“", rx.el.strong(OperatorState.host, " refused to connect"), "” means a redirect URL mismatch: Discord "
            "sent the browser to a redirect that is not where this product answers. Register the callback URL above, "
            "remove the old ones, and log in again.",
        ),
    )  # fmt: skip


def environment_chapter() -> rx.Component:
    """Return the settings that sign-in needs."""
    return chapter("Environment settings", environment_list())


def environment_list() -> rx.Component:
    """Return each setting and what it is."""
    return rx.el.dl(
        *[
            rx.el.div(
                rx.el.dt(code(name), class_name="break-words"),
                rx.el.dd(text, class_name="muted mt-0.5 text-sm sm:mt-0 sm:text-base"),
                class_name="border-b hairline py-2.5 sm:grid sm:grid-cols-[15rem_1fr] sm:gap-4",
            )
            for name, text in ENVIRONMENT
        ]
    )


def _present_card() -> rx.Component:
    return card(
        card_title("Settings", "Only whether each has a value. The sandbox creates its own SECRET_KEY."),
        rx.cond(
            OperatorState.presences,
            rx.el.ul(rx.foreach(OperatorState.presences, _presence), class_name="flex flex-col gap-2"),
            skeleton("h-48"),
        ),
    )


def _presence(presence: rx.vars.ObjectVar[SettingPresence]) -> rx.Component:
    return rx.el.li(
        rx.el.code(presence.name, class_name="code break-all"),
        rx.cond(presence.present, badge("present", "good"), badge("missing", "warning")),
        key=presence.name,
        class_name="flex items-center justify-between gap-3",
    )


def _ways_on() -> rx.Component:
    return rx.el.div(
        link_button("Test Discord Login", LOGIN_PATH, kind="primary", leaves_app=True),
        link_button("Setup Guide", SETUP_PATH),
        link_button("Return to Home", "/", kind="quiet"),
        class_name="flex flex-wrap gap-3",
    )
