"""The invite list: servers that a person may add the bot to."""

import reflex as rx

from components.layout.frame import member_frame, page_head
from components.layout.navigation import CONNECT_PATH
from components.ui.badge import badge
from components.ui.button import button, link_button
from components.ui.card import empty_card
from components.ui.effects.texts import about
from components.ui.picture import server_icon
from components.ui.placeholders import once_read, skeleton
from locales import _
from settings import settings
from state.dashboard.invite import GuildView, InviteState


def invite() -> rx.Component:
    """Return the list, with a button to add the bot or to configure the server."""
    bot = settings().bot_name
    return member_frame(
        page_head(
            _("Invite {bot} to Your Servers").format(bot=bot),
            _("Discord servers where you are the owner or an administrator."),
            link_button(_("Add a server by hand"), "/server-setup"),
        ),
        once_read(
            InviteState.loaded,
            InviteState.failed,
            InviteState.load,
            rx.cond(InviteState.connected, _servers(), _connect_first()),
            rx.el.div(*[skeleton("h-20") for _ in range(3)], class_name="grid grid-cols-1 gap-4"),
        ),
        narrow=True,
    )


def _connect_first() -> rx.Component:
    return empty_card(
        "link",
        _("Connect Discord First"),
        _("We can no longer read your servers from Discord. Connect your Discord account again."),
        link_button(_("Connect Discord"), CONNECT_PATH, kind="primary", leaves_app=True),
    )


def _servers() -> rx.Component:
    return rx.cond(
        InviteState.guilds,
        rx.el.ul(rx.foreach(InviteState.guilds, _server), class_name="grid grid-cols-1 gap-4"),
        empty_card(
            "server-off",
            _("No Servers Found"),
            _("You need to own a Discord server, or be an administrator of one."),
            button(_("Refresh"), kind="primary", icon="refresh-cw", on_click=InviteState.refresh),
        ),
    )


def _server(guild: rx.vars.ObjectVar[GuildView]) -> rx.Component:
    inviting = InviteState.inviting == guild.id
    bot = settings().bot_name
    return rx.el.li(
        server_icon(guild.name, guild.icon_url),
        rx.el.div(
            rx.el.h2(guild.name, dir="auto", class_name="cut-name text-lg font-semibold"),
            rx.el.div(
                rx.cond(guild.owner, badge(_("Owner"), "info")),
                badge(_("Admin Access")),
                class_name="mt-1 flex flex-wrap gap-2",
            ),
            class_name="min-w-0 flex-1 basis-48",
        ),
        rx.cond(
            guild.has_bot,
            rx.el.div(
                badge(_("{bot} Added").format(bot=bot), "good"),
                link_button(
                    _("Configure"),
                    f"/dashboard?server={guild.id}",
                    icon="settings-2",
                    aria_label=about(_("Configure"), guild.name),
                ),
                class_name="flex flex-wrap items-center gap-3",
            ),
            button(
                _("Add {bot}").format(bot=bot),
                kind="primary",
                icon="plus",
                busy=inviting,
                busy_label=_("Inviting..."),
                on_click=InviteState.invite(guild.id),
                aria_label=rx.cond(
                    inviting, about(_("Inviting..."), guild.name), about(_("Add {bot}").format(bot=bot), guild.name)
                ),
            ),
        ),
        key=guild.id,
        class_name="surface flex flex-wrap items-center gap-4 p-4 sm:p-5",
    )
