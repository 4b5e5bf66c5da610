"""A server's configuration: its name, its tabs from one table, and the tab that the URL names."""

from collections.abc import Callable
from dataclasses import dataclass

import reflex as rx

from components.layout.frame import member_frame, page_head
from components.pages.developers.developers import developers_tab
from components.pages.replacements.new_contract import contract_card
from components.pages.replacements.new_role import role_card
from components.pages.server.activity import activity_tab
from components.pages.server.breaker import held_back_banner
from components.pages.server.channels import channels_tab
from components.pages.server.first_steps import first_steps
from components.pages.server.health import server_health_tab
from components.pages.server.members import members_tab
from components.pages.server.move import move_tab
from components.pages.server.rules import bring_rules, rules_tab
from components.pages.server.tab_outlines import bot_is_away, missing_server
from components.ui.button import link_button
from components.ui.effects.changed import when_changed
from components.ui.effects.every import every
from components.ui.placeholders import could_not_load, skeleton, waiting
from locales import _
from state.core.timing import SERVER_POLL_SECONDS
from state.dashboard.server_page import ServerPageState
from state.server.activity import ActivityState
from state.server.api_tokens import ApiTokensState
from state.server.breaker import SHOWN_ON, HeldBackState
from state.server.channels import ChannelsState
from state.server.first_steps import FirstStepsState
from state.server.health import ServerHealthState
from state.server.members import MembersState
from state.server.move import MoveState
from state.server.new_contract import MigrationState
from state.server.new_role import NewRoleState
from state.server.protected_roles import ProtectedRolesState
from state.server.rules import RulesState


@dataclass(frozen=True)
class Tab:
    """A tab: its name in the URL (one of `server_page.TABS`), its label, its content, and what it loads."""

    key: str
    label: str
    content: Callable[[], rx.Component]
    loads: tuple[rx.event.EventCallback[()], ...]


def _rules() -> rx.Component:
    # The last that is read. Shown earlier, the cards would be pushed down by what arrives above them.
    all_read = (MigrationState.shown_for == ServerPageState.server_id) | (MigrationState.fault != "")
    return rx.el.div(rules_tab(), rx.cond(all_read, rx.el.div(bring_rules(), contract_card(), role_card())))


TABS = (
    Tab(
        "rules", _("Rules"), _rules, (RulesState.load, ProtectedRolesState.load, MigrationState.load, NewRoleState.load)
    ),
    Tab("members", _("Members"), members_tab, (MembersState.load,)),
    Tab("activity", _("Activity"), activity_tab, (ActivityState.load,)),
    Tab("health", _("Health"), server_health_tab, (ServerHealthState.load,)),
    Tab("channel", _("Verification channel"), channels_tab, (ChannelsState.load,)),
    # Translators: a tab: moving in from another bot.
    Tab("move", _("Move"), move_tab, (MoveState.load,)),
    # Translators: a tab: for those who write programs that work with the server.
    Tab("developers", _("Developers"), developers_tab, (ApiTokensState.load,)),
)
"""In the order of the bar; the first is the default."""

_READ_TABS = [load for tab in TABS for load in tab.loads]
LOAD = (ServerPageState.load, FirstStepsState.load, HeldBackState.load, *_READ_TABS)
"""What runs when the page is opened or the tab changes; only the open tab's load reads anything."""


_IN_VIEW = """
(bar => {
  const open = bar?.querySelector('[aria-current=page]');
  if (!open) return;
  const [around, own] = [bar, open].map(one => one.getBoundingClientRect());
  bar.scrollBy({left: own.left + own.width / 2 - around.left - around.width / 2});
})(document.getElementById('tabs'))
"""
"""Scrolls the bar alone to the open tab, at a moment that only the browser knows."""


def server_config() -> rx.Component:
    """Return the server's name and its tabs."""
    return member_frame(
        rx.cond(
            ServerPageState.loaded,
            rx.cond(
                ServerPageState.missing,
                missing_server(),
                rx.cond(
                    ServerPageState.fault != "",
                    could_not_load(list(LOAD), ServerPageState.fault),
                    rx.cond(FirstStepsState.shown_for == ServerPageState.server_id, _server(), _outline()),
                ),
            ),
            _outline(),
        )
    )


def _outline() -> rx.Component:
    return waiting(list(LOAD), skeleton("h-9 w-72"), skeleton("mt-8 h-40"))


def _server() -> rx.Component:
    return rx.el.div(
        page_head(
            ServerPageState.name,
            _("Its rules, its members, and everything that happened there."),
            link_button(_("Back to Dashboard"), "/dashboard", kind="quiet", icon="arrow-left"),
            link_button(_("Add Rule"), ServerPageState.add_rule_url, kind="primary", icon="plus"),
        ),
        every(SERVER_POLL_SECONDS, ServerPageState.look, seen_only=True),
        rx.cond(
            rx.Var.create(ServerPageState.bot_turns) != 0, when_changed(f"{ServerPageState.bot_turns}", _READ_TABS)
        ),
        rx.cond(ServerPageState.bot_invited, rx.fragment(), bot_is_away()),
        first_steps(),
        _bar(),
        rx.match(ServerPageState.tab, *((tab.key, _content(tab)) for tab in TABS), rx.fragment()),
    )


def _content(tab: Tab) -> rx.Component:
    """Return the tab's content, below the banner on the tabs that show it."""
    above = [held_back_banner()] if tab.key in SHOWN_ON else []
    return rx.el.div(*above, tab.content())


def _bar() -> rx.Component:
    """Return the tabs as links; on a narrow screen only the bar scrolls, to the open tab."""
    return rx.el.nav(
        rx.el.ul(*map(_link, TABS), class_name="flex w-max min-w-full gap-1 border-b hairline"),
        # The bar may appear with the tab of an earlier visit, before the one in the URL is known.
        when_changed(ServerPageState.tab, rx.run_script(_IN_VIEW)),
        id="tabs",
        class_name="mb-6 overflow-x-auto",
        aria_label=_("Server configuration"),
    )


def _link(tab: Tab) -> rx.Component:
    current = ServerPageState.tab == tab.key
    return rx.el.li(
        rx.el.a(
            tab.label,
            href=f"{ServerPageState.config_url}&tab={tab.key}",
            # The bar stays where it was pressed: on a phone, what is above it can fill the window.
            prevent_scroll_reset=True,
            aria_current=rx.cond(current, "page", "false"),
            class_name=rx.cond(
                current,
                "block rounded-t-field border-b-2 border-primary px-2 py-3 font-semibold -outline-offset-3 sm:px-3",
                "muted block rounded-t-field border-b-2 border-transparent px-2 py-3 font-medium -outline-offset-3 "
                "hover:text-base-content sm:px-3",
            ),
        )
    )
