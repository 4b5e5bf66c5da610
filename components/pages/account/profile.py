"""A person's own profile."""

import reflex as rx

from components.layout.ended_session import ended_session, log_in_again
from components.layout.frame import member_frame, page_head
from components.layout.languages import languages
from components.layout.navigation import LOGOUT_PATH
from components.pages.account.my_data import choices, farewell, my_data, sessions
from components.ui.badge import badge
from components.ui.button import link_button
from components.ui.card import card, card_title
from components.ui.effects.texts import filled
from components.ui.picture import avatar
from components.ui.placeholders import once_read, skeleton
from locales import _
from state.account.my_data import MyDataState
from state.account.profile import AccountState


def account() -> rx.Component:
    """Return the profile, the verification status and the quick actions."""
    return member_frame(
        page_head(
            _("Account"), _("Your profile, the places where you are logged in, and the data we store about you.")
        ),
        once_read(
            AccountState.loaded & MyDataState.loaded,
            AccountState.failed | MyDataState.failed,
            [AccountState.load, MyDataState.load],
            rx.el.div(
                rx.el.div(
                    _profile(), _status(), rx.el.div(choices(), class_name="min-w-0 max-md:order-1"), class_name=_MIXED
                ),
                rx.el.div(
                    _actions(),
                    rx.el.div(_language(), sessions(), my_data(), class_name=f"{_COLUMN} max-md:order-2"),
                    class_name=_MIXED,
                ),
                class_name=_COLUMNS,
            ),
            rx.el.div(
                rx.el.div(skeleton("h-56"), skeleton("h-32"), skeleton("h-48"), class_name=_COLUMN),
                rx.el.div(skeleton("h-48"), skeleton("h-40"), skeleton("h-40"), class_name=_COLUMN),
                class_name=_COLUMNS,
            ),
        ),
        logout=False,
    )


_COLUMNS = "grid grid-cols-1 items-start gap-6 md:grid-cols-[1.4fr_1fr]"
_COLUMN = "grid grid-cols-1 min-w-0 gap-6"
# On a phone both columns are one, where the quick actions come before the choices of the first.
_MIXED = f"{_COLUMN} max-md:contents"


def account_left() -> rx.Component:
    """Return the screen for a session that ends while it is open, also with the deletion of all data."""
    restricted = log_in_again("lock", _("Access Restricted"), _("Please log in to see your account."))
    return ended_session(rx.cond(MyDataState.forgotten, farewell(), restricted))


def _profile() -> rx.Component:
    return card(
        rx.el.div(
            avatar(AccountState.name, AccountState.avatar_url, "size-20"),
            rx.el.div(
                rx.el.h2(AccountState.name, dir="auto", class_name="cut-name text-xl font-semibold"),
                rx.el.div(
                    rx.cond(AccountState.connected, badge(_("Discord Connected"), "good")),
                    rx.cond(AccountState.verified, badge(_("Verified"), "good")),
                    badge(filled(_("User ID: {id}"), id=AccountState.user_id)),
                    class_name="mt-2 flex flex-wrap gap-2",
                ),
                class_name="min-w-0 flex-1 basis-40",
            ),
            class_name="flex flex-wrap items-center gap-4",
        ),
        rx.el.dl(
            _fact(_("Username"), AccountState.name),
            _fact(_("Email"), rx.cond(AccountState.email != "", AccountState.email, _("Discord does not share it"))),
            _fact(_("Discord Username"), AccountState.discord_username),
            class_name="mt-6 grid grid-cols-1 gap-4 sm:grid-cols-2",
        ),
    )


def _fact(label: str, value: rx.Var[str] | rx.Component | str | int) -> rx.Component:
    return rx.el.div(rx.el.dt(label, class_name="muted text-sm"), rx.el.dd(value, class_name="break-words font-medium"))


def _status() -> rx.Component:
    return card(
        card_title(_("Verification Status")),
        rx.el.dl(
            _fact(_("Verified Wallets"), AccountState.wallets),
            _fact(
                _("Account Status"),
                rx.cond(AccountState.verified, badge(_("Verified"), "good"), badge(_("Pending"), "warning")),
            ),
            class_name="grid grid-cols-2 gap-4",
        ),
    )


def _language() -> rx.Component:
    return card(
        card_title(
            _("Language"),
            _("Your choice is kept with your account. In Discord, the bot follows Discord's own setting."),
        ),
        languages(""),
    )


def _actions() -> rx.Component:
    return card(
        card_title(_("Quick Actions")),
        rx.el.div(
            link_button(_("Dashboard"), "/dashboard", icon="layout-dashboard", class_name="justify-start"),
            link_button(_("Add a server"), "/invite", icon="plus", class_name="justify-start"),
            link_button(_("Logout"), LOGOUT_PATH, icon="log-out", leaves_app=True, class_name="justify-start"),
            class_name="grid grid-cols-1 gap-3",
        ),
    )
