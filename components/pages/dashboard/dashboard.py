"""The dashboard: a person's servers, and three numbers about them."""

import reflex as rx

from components.layout.frame import member_frame, page_head
from components.layout.navigation import log_out
from components.pages.dashboard.analytics import analytics
from components.ui.badge import badge
from components.ui.button import button, link_button
from components.ui.card import card, stat
from components.ui.effects.changed import when_changed
from components.ui.effects.every import every
from components.ui.effects.texts import about, filled, sentence
from components.ui.picture import server_icon
from components.ui.placeholders import empty, once_read, skeleton, skeleton_cards
from components.ui.tooltip import tooltip
from locales import _, pgettext
from settings import settings
from state.core.session import SessionState
from state.core.timing import ANALYTICS_STALE_SECONDS
from state.dashboard.analytics import AnalyticsState
from state.dashboard.servers import DashboardState, ServerCardView

# As many in a row as their text has room for: with large text the three are below each other.
_STATS = "mb-8 grid grid-cols-1 gap-5 sm:grid-cols-[repeat(auto-fit,minmax(min(100%,11rem),1fr))]"


def dashboard() -> rx.Component:
    """Return the members' screen at / and /dashboard."""
    return member_frame(
        rx.window_event_listener(
            on_focus=DashboardState.focused, on_visibility_change=DashboardState.visibility_changed
        ),
        every(ANALYTICS_STALE_SECONDS, AnalyticsState.load),
        page_head(
            filled(_("Welcome back, {name}"), name=SessionState.name),
            _("Your servers, their rules and the people in them."),
            button(
                _("Refresh"),
                icon="refresh-cw",
                busy=DashboardState.refreshing,
                busy_label=_("Refreshing..."),
                on_click=DashboardState.refresh,
            ),
            button(_("Logout"), icon="log-out", on_click=log_out()),
        ),
        once_read(
            DashboardState.loaded,
            DashboardState.failed,
            [DashboardState.load, AnalyticsState.load],
            _content(),
            _stats_to_come(),
            skeleton_cards("h-56"),
            word=_("Loading dashboard..."),
        ),
        logout=False,
    )


def _stats_to_come() -> rx.Component:
    return rx.el.div(*[skeleton("h-[8.125rem]") for _ in range(3)], class_name=_STATS)


def _content() -> rx.Component:
    return rx.el.div(
        rx.cond(
            AnalyticsState.loaded,
            rx.el.dl(
                stat(
                    _("Total Verifications"),
                    AnalyticsState.total_verifications,
                    "badge-check",
                    _("members with a verified wallet"),
                ),
                stat(_("Active Rules"), AnalyticsState.active_rules, "list-checks", _("rules that give roles now")),
                stat(
                    _("Connected Servers"),
                    AnalyticsState.connected_servers,
                    "server",
                    # Until the bot is in one of them, the number counts those in the list, which need not be all.
                    rx.cond(
                        DashboardState.has_bot | (rx.Var.create(AnalyticsState.connected_servers).to(int) == 0),
                        _("servers with {bot}").format(bot=settings().bot_name),
                        _("servers that you administer"),
                    ),
                ),
                class_name=_STATS,
            ),
            # While the numbers fail, the section about analytics says so.
            rx.cond(AnalyticsState.failed, rx.fragment(), _stats_to_come()),
        ),
        rx.cond(
            DashboardState.cards,
            rx.el.div(
                rx.el.ul(
                    rx.foreach(DashboardState.cards, _server),
                    _another(),
                    class_name="grid grid-cols-1 gap-5 md:grid-cols-2 lg:grid-cols-3",
                ),
                rx.cond(DashboardState.highlighted != "", when_changed(DashboardState.highlighted, _come_into_view())),
                analytics(),
            ),
            card(
                empty(
                    "server",
                    _("No servers configured"),
                    _("Invite the bot to a server you run. Servers appear here automatically after invitation."),
                    link_button(_("Invite Bot to a Server"), "/invite", kind="primary", icon="plus"),
                    link_button(_("Add a server by hand"), "/server-setup"),
                ),
                rx.el.p(
                    sentence(
                        _("Are you here as a member of a server? {link}"),
                        link=rx.el.a(
                            _("Verify your wallets"), href="/wallet-verification", class_name="link font-semibold"
                        ),
                    ),
                    class_name="muted pb-6 text-center text-sm",
                ),
            ),
        ),
    )


def _server(server: rx.vars.ObjectVar[ServerCardView]) -> rx.Component:
    return rx.el.li(
        rx.el.div(
            server_icon(server.name, server.icon_url),
            rx.el.div(
                rx.el.h2(server.name, dir="auto", class_name="cut-name text-lg font-semibold"),
                rx.el.p(
                    filled(_("ID {id}"), id=server.id),
                    class_name="muted code break-all text-xs max-sm:text-[0.6875rem]",
                ),
                class_name="min-w-0 flex-1",
            ),
            rx.cond(
                server.bot_invited, badge(pgettext("server", "Active"), "good"), badge(pgettext("server", "Inactive"))
            ),
            class_name="flex items-start gap-3",
        ),
        rx.el.dl(
            _fact(_("Verification Rules"), server.rules),
            _fact(_("Verified Members"), server.verified_members),
            class_name="mt-5 grid grid-cols-2 gap-3",
        ),
        rx.cond(
            server.held_back != "",
            rx.el.a(
                rx.icon("shield-alert", size=18, class_name="shrink-0 text-warning", aria_hidden="true"),
                server.held_back,
                href=server.configure_url,
                class_name="mt-4 flex items-center gap-2 rounded-field bg-warning/12 px-3 py-2 text-sm font-semibold "
                "hover:underline",
            ),
        ),
        rx.el.div(_bot_button(server), _configure_button(server), class_name="mt-5 grid grid-cols-2 gap-3"),
        key=server.id,
        id=f"server-{server.id}",
        class_name=rx.cond(
            DashboardState.highlighted == server.id,
            "surface flex scroll-mt-6 flex-col justify-between p-5 outline outline-2 outline-accent",
            "surface flex scroll-mt-6 flex-col justify-between p-5",
        ),
    )


def _another() -> rx.Component:
    """Return the placeholder card that leads to another server."""
    return rx.el.li(
        rx.el.a(
            rx.icon("plus", size=20, aria_hidden="true"),
            _("Add another server"),
            href="/invite",
            class_name="muted flex h-full min-h-24 items-center justify-center gap-2 rounded-box border-2 "
            "border-dashed hairline p-5 font-semibold hover:border-primary hover:text-primary",
        )
    )


def _come_into_view() -> rx.event.EventSpec:
    """Scroll to the highlighted server's card once it is in the page, which only the browser knows."""
    return rx.scroll_to(f"server-{DashboardState.highlighted}")


def _fact(label: str, value: rx.Var[int]) -> rx.Component:
    return rx.el.div(
        rx.el.dt(label, class_name="muted text-xs"),
        rx.el.dd(value, class_name="text-lg font-semibold tabular-nums"),
        class_name="flex flex-col-reverse rounded-field bg-base-200 px-3 py-2",
    )


def _bot_button(server: rx.vars.ObjectVar[ServerCardView]) -> rx.Component:
    return rx.cond(
        server.bot_invited,
        tooltip(
            button(_("Bot Active"), disabled=True, aria_label=about(_("Bot Active"), server.name)),
            _("The bot is in this server"),
            disabled=True,
        ),
        button(
            _("Invite Bot"),
            kind="primary",
            on_click=DashboardState.invite(server.id),
            aria_label=about(_("Invite Bot"), server.name),
        ),
    )


def _configure_button(server: rx.vars.ObjectVar[ServerCardView]) -> rx.Component:
    return rx.cond(
        server.bot_invited & (server.internal_id != 0),
        link_button(
            _("Configure"), server.configure_url, icon="settings-2", aria_label=about(_("Configure"), server.name)
        ),
        tooltip(
            button(_("Configure"), icon="settings-2", disabled=True, aria_label=about(_("Configure"), server.name)),
            _("Invite the bot to this server first"),
            disabled=True,
        ),
    )
