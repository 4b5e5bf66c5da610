"""Five operator pages about Discord's sign-in: two for set-up, repair, debug and a test."""

import reflex as rx

from components.layout.frame import of_audience
from components.layout.navigation import LOGIN_PATH
from components.layout.text_page import bullets, chapter, code, link, reading, steps
from components.ui.badge import badge
from components.ui.button import link_button
from components.ui.card import card, card_title
from components.ui.copy import copyable
from components.ui.effects.texts import filled, sentence
from components.ui.placeholders import skeleton
from locales import _
from setting_checks import setup_path
from settings import CALLBACK_PATH, settings
from state.core.session import SessionState
from state.help.operator import OperatorState, SettingPresence

DEVELOPER_PORTAL = "https://discord.com/developers/applications"

SETUP_PATH = setup_path(settings().product_name)
STAGING_CALLBACK = f"{settings().staging_url.rstrip('/')}{CALLBACK_PATH}"
ENVIRONMENT = (
    ("DISCORD_CLIENT_ID", _("Client id: the application's id, on its OAuth2 page.")),
    ("DISCORD_CLIENT_SECRET", _("Client secret, on the same page.")),
    ("DISCORD_BOT_TOKEN", _("Bot token, on the Bot page.")),
    ("SECRET_KEY", _("Session secret: a long random text; SESSION_SECRET is read as well.")),
    ("DATABASE_URL", _("Database URL of a PostgreSQL. Empty means the embedded one.")),
    ("PUBLIC_URL", _("Custom domain (optional): the address that people open.")),
)


def oauth_setup() -> rx.Component:
    """Return the guide that sets the login up."""
    return reading(
        _("Discord OAuth Setup"),
        _("What has to be registered with Discord before anybody can log in."),
        callback_card(),
        chapter(
            _("Register the callback"),
            steps(
                (
                    (_("Open the Developer Portal"), link("discord.com/developers/applications", DEVELOPER_PORTAL)),
                    (_("Select your application, then OAuth2"), _("Or create an application first.")),
                    (
                        _("Add the redirect"),
                        sentence(_("It ends in {callback} and is shown above in full."), callback=code(CALLBACK_PATH)),
                    ),
                    (_("Save"), _("Discord applies it at once.")),
                )
            ),
        ),
        chapter(
            _("Scopes"),
            sentence(
                _("Login asks for {first} and {second}, nothing else."), first=code("identify"), second=code("guilds")
            ),
        ),
        environment_chapter(),
        _ways_on(),
    )


def product_setup() -> rx.Component:
    """Return both callback URLs, and six steps to register them."""
    return reading(
        _("{product} Setup").format(product=settings().product_name),
        _("Register both callback URLs with Discord, and login works in production and in staging."),
        callback_card(_("Production callback URL")),
        card(card_title(_("Staging callback URL")), copyable(STAGING_CALLBACK)),
        chapter(
            _("Six steps"),
            steps(
                (
                    (_("Open the Developer Portal"), link("discord.com/developers/applications", DEVELOPER_PORTAL)),
                    (_("Select your application"), _("The one whose bot is {bot}.").format(bot=settings().bot_name)),
                    (_("Go to OAuth2, General"), _("The redirects are listed there.")),
                    (_("Clear old redirects"), _("Those that name a host you no longer use.")),
                    (_("Add both callback URLs"), _("Exactly as above, with no slash at the end.")),
                    (_("Save"), _("Discord applies them at once.")),
                )
            ),
        ),
        environment_chapter(),
        rx.el.div(
            link_button(_("Test Discord Login"), LOGIN_PATH, kind="primary", leaves_app=True),
            link_button(_("Return to Home"), "/"),
            class_name="flex flex-wrap gap-3",
        ),
    )


def oauth_fix() -> rx.Component:
    """Return what to check when Discord refuses a login."""
    return reading(
        _("Fix Discord OAuth"),
        _("When logging in fails, the redirect URL is nearly always the reason."),
        callback_card(),
        refused_chapter(),
        chapter(
            _("What to check"),
            bullets(
                (
                    sentence(
                        _(
                            "In the {portal} under OAuth2, the redirect is exactly the callback URL above: scheme, "
                            "host, port and path."
                        ),
                        portal=link(_("Developer Portal"), DEVELOPER_PORTAL),
                    ),
                    sentence(
                        _("{setting} is the address that people open, without a path."), setting=code("PUBLIC_URL")
                    ),
                    sentence(
                        _("The scopes are {first} and {second}."), first=code("identify"), second=code("guilds")
                    ),
                    sentence(
                        _("{first} and {second} belong to the same application."),
                        first=code("DISCORD_CLIENT_ID"), second=code("DISCORD_CLIENT_SECRET"),
                    ),
                    _("The product was restarted after a change of settings."),
                )
            ),
        ),
        environment_chapter(),
        _ways_on(),
    )  # fmt: skip


def oauth_debug() -> rx.Component:
    """Return the settings that sign-in uses now."""
    return reading(
        _("OAuth Debug"),
        _("The settings that login uses now. Values are never shown."),
        callback_card(),
        _present_card(),
        refused_chapter(),
        _ways_on(),
    )


def test_auth() -> rx.Component:
    """Return whether this browser is signed in, and the settings that sign-in uses."""
    return reading(
        _("Test Authentication"),
        _("Whether this browser is logged in, and which settings login uses."),
        card(card_title(_("This browser")), of_audience(_logged_out, _logged_in)),
        callback_card(),
        _present_card(),
        rx.el.div(link_button(_("Test Discord Login"), LOGIN_PATH, kind="primary", leaves_app=True)),
    )


def _logged_out() -> rx.Component:
    return rx.el.p(_("Not logged in."))


def _logged_in() -> rx.Component:
    name = SessionState.name
    return rx.cond(name != "", rx.el.p(filled(_("Logged in as {name}."), name=name)), skeleton("h-6 w-48"))


def callback_card(title: str = _("Callback URL")) -> rx.Component:
    """Return the callback URL of the current host, with a warning if sign-in uses another."""
    return card(
        card_title(title, _("Built from the host that you opened this page under.")),
        rx.cond(OperatorState.callback_url != "", copyable(OperatorState.callback_url), skeleton("h-11")),
        callback_warning(),
    )


def callback_warning() -> rx.Component:
    """Return the warning for a host other than the one in PUBLIC_URL."""
    return rx.cond(
        OperatorState.used_callback_url != "",
        rx.el.p(
            sentence(
                _(
                    "Careful: login uses PUBLIC_URL, so Discord gets another callback URL: {callback}. Register that "
                    "one, or set PUBLIC_URL to this host."
                ),
                callback=rx.el.code(OperatorState.used_callback_url, class_name="code break-all"),
            ),
            class_name="mt-3 rounded-field bg-warning/12 p-3 font-medium text-warning",
            role="alert",
        ),
    )


def refused_chapter() -> rx.Component:
    """Return an explanation of the browser's error page."""
    return chapter(
        _("If a host refused to connect"),
        sentence(
            _(
                "“{message}” means a redirect URL mismatch: Discord sent the browser to a redirect that is not where "
                "this product answers. Register the callback URL above, remove the old ones, and log in again."
            ),
            message=rx.el.strong(filled(
                _("{host} refused to connect"),
                host=rx.cond(OperatorState.host != "", OperatorState.host, _("This host")),
            )),
        ),
    )  # fmt: skip


def environment_chapter() -> rx.Component:
    """Return the settings that sign-in needs."""
    settings_list = rx.el.dl(
        *[
            rx.el.div(
                rx.el.dt(code(name), class_name="break-words sm:basis-60"),
                rx.el.dd(text, class_name="muted mt-0.5 text-sm sm:mt-0 sm:flex-1 sm:basis-64 sm:text-base"),
                class_name="border-b hairline py-2.5 sm:flex sm:flex-wrap sm:gap-x-4",
            )
            for name, text in ENVIRONMENT
        ]
    )
    return chapter(_("Environment settings"), settings_list)


def _present_card() -> rx.Component:
    return card(
        card_title(_("Settings"), _("Only whether each has a value. The sandbox creates its own SECRET_KEY.")),
        rx.cond(
            OperatorState.presences,
            rx.el.ul(rx.foreach(OperatorState.presences, _presence), class_name="flex flex-col gap-2"),
            skeleton("h-48"),
        ),
    )


def _presence(presence: rx.vars.ObjectVar[SettingPresence]) -> rx.Component:
    return rx.el.li(
        rx.el.code(presence.name, class_name="code break-all"),
        rx.cond(presence.present, badge(_("present"), "good"), badge(_("missing"), "warning")),
        key=presence.name,
        class_name="flex items-center justify-between gap-3",
    )


def _ways_on() -> rx.Component:
    return rx.el.div(
        link_button(_("Test Discord Login"), LOGIN_PATH, kind="primary", leaves_app=True),
        link_button(_("Setup Guide"), SETUP_PATH),
        link_button(_("Return to Home"), "/", kind="quiet"),
        class_name="flex flex-wrap gap-3",
    )
