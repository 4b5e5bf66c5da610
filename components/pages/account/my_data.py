"""The account screen's cards about personal data: sessions, choices for each server, download and deletion."""

import reflex as rx

from components.layout.navigation import forget_session, leave_everywhere, log_out
from components.ui.badge import badge, role_mark
from components.ui.button import button, link_button
from components.ui.card import card, card_title
from components.ui.dialog import confirm
from components.ui.effects.texts import about, counted, filled, sentence
from components.ui.field import text_input
from components.ui.picture import server_icon
from components.ui.placeholders import empty
from locales import _
from settings import settings
from state.account.my_data import CONFIRMATION, ChoiceRowView, EndingRole, MyDataState, SessionRowView

EXPORT_PATH = "/api/me/export"


def sessions() -> rx.Component:
    """Return the person's sessions, with a button to end each; those of other browsers are folded up."""
    all_ = rx.Var.create(MyDataState.sessions).to(list[SessionRowView])
    others = all_.length() - 1
    return card(
        card_title(_("Sessions"), _("Browsers and programs that are logged in as you.")),
        rx.el.ul(rx.foreach(all_, lambda one: rx.cond(one.current, _session(one)))),
        rx.cond(
            others > 0,
            rx.el.details(
                rx.el.summary(
                    counted("{count} other session", "{count} other sessions", others),
                    class_name="w-fit cursor-pointer rounded-field text-sm font-medium text-primary",
                ),
                rx.el.ul(
                    rx.foreach(all_, lambda one: rx.cond(one.current, rx.fragment(), _session(one))),
                    class_name="mt-3 divide-y hairline",
                ),
                class_name="mt-4",
            ),
        ),
        rx.el.div(
            button(_("Log out everywhere"), icon="log-out", on_click=leave_everywhere()),
            class_name="mt-4 border-t hairline pt-4",
        ),
    )


def _session(session: rx.vars.ObjectVar[SessionRowView]) -> rx.Component:
    return rx.el.li(
        rx.el.div(
            rx.el.p(
                session.browser,
                rx.cond(session.current, badge(_("This session"), "info")),
                class_name="flex flex-wrap items-center gap-2 font-medium",
            ),
            rx.el.p(filled(_("Last used {time}"), time=session.seen), class_name="muted text-sm"),
            rx.el.p(filled(_("Logged in {time}"), time=session.since), class_name="muted text-sm"),
            class_name="min-w-0 flex-1",
        ),
        button(
            _("Log out"),
            class_name="btn-sm",
            on_click=rx.cond(session.current, log_out(), MyDataState.sign_out(session.id)),
            aria_label=about(_("Log out"), f"{session.browser} ({session.seen})"),
        ),
        key=session.id,
        class_name="flex items-center gap-3 border-[color:var(--line)] py-3 first:pt-0 last:pb-0",
    )


def choices() -> rx.Component:
    """Return per server: whether wallets count there, whether its admins may see them, and an address for payouts."""
    return card(
        card_title(
            _("Your wallets in each server"),
            _("You decide in which servers your wallets count, and whether admins may see them."),
        ),
        rx.cond(
            MyDataState.choices,
            rx.el.ul(rx.foreach(MyDataState.choices, _choice), class_name="divide-y hairline"),
            rx.el.p(
                _("You are not a member of any server with {bot} yet.").format(bot=settings().bot_name),
                class_name="muted py-2 text-sm",
            ),
        ),
    )


def _choice(choice: rx.vars.ObjectVar[ChoiceRowView]) -> rx.Component:
    return rx.el.li(
        rx.el.div(
            server_icon(choice.name, choice.icon_url, "size-10"),
            rx.el.div(
                rx.el.h3(choice.name, dir="auto", class_name="cut-name font-medium"),
                rx.el.p(
                    rx.cond(
                        choice.roles != "",
                        filled(_("Your roles: {roles}"), roles=choice.roles),
                        _("No role from {product} yet").format(product=settings().product_name),
                    ),
                    class_name="muted break-words text-sm",
                ),
                class_name="min-w-0",
            ),
            class_name="flex min-w-0 items-center gap-3",
        ),
        rx.el.div(
            _switch(
                _("Use my wallets"),
                filled(_("Use my wallets in {name}"), name=choice.name),
                choice.use_wallets,
                MyDataState.use_wallets(choice.server_id, ~choice.use_wallets),
            ),
            _switch(
                _("Show them to admins"),
                filled(_("Show my wallets to admins of {name}"), name=choice.name),
                choice.share_wallets,
                MyDataState.share_wallets(choice.server_id, ~choice.share_wallets),
            ),
            class_name="flex flex-col gap-2",
        ),
        _payout(choice),
        key=choice.server_id.to_string(),
        class_name=(
            "grid grid-cols-1 items-center gap-3 border-[color:var(--line)] py-4 first:pt-0 last:pb-0 "
            "sm:grid-cols-[1fr_auto]"
        ),
    )


def _payout(choice: rx.vars.ObjectVar[ChoiceRowView]) -> rx.Component:
    """Return the choice of an address for the server's airdrop list, and the admins who downloaded it."""
    return rx.el.div(
        rx.el.label(
            rx.el.span(_("Address for payouts"), class_name="text-sm"),
            rx.el.select(
                rx.el.option(_("No address"), value=""),
                rx.foreach(
                    MyDataState.payout_wallets,
                    lambda wallet: rx.el.option(wallet.address, value=wallet.id, key=wallet.id),
                ),
                value=choice.payout,
                on_change=lambda value: MyDataState.choose_payout(choice.server_id, value),
                aria_label=filled(_("Address for payouts in {name}"), name=choice.name),
                class_name="select select-sm w-full sm:w-56",
            ),
            class_name="flex flex-wrap items-center gap-x-3 gap-y-1",
        ),
        rx.el.p(
            _(
                "Admins of this server can download the whole address that you choose, with the exact amounts that all "
                "your wallets hold for its rules. Choose No address to withdraw it at once."
            ),
            class_name="muted mt-1 text-sm",
        ),
        rx.cond(
            choice.downloads,
            rx.el.details(
                rx.el.summary(_("Who downloaded it"), class_name="w-fit cursor-pointer rounded-field text-sm"),
                rx.el.ul(
                    rx.foreach(choice.downloads, lambda line: rx.el.li(line, class_name="break-words")),
                    class_name="muted mt-1 text-sm",
                ),
                class_name="mt-1",
            ),
        ),
        class_name="sm:col-span-2",
    )


def _switch(label: str, full: rx.Var[str] | str, on: rx.Var[bool] | bool, turn: rx.event.EventSpec) -> rx.Component:
    return rx.el.label(
        rx.el.input(
            type="checkbox",
            role="switch",
            checked=on,
            on_change=turn,
            aria_label=full,
            class_name="toggle toggle-sm toggle-primary",
        ),
        rx.el.span(label),
        class_name="flex cursor-pointer items-center gap-2.5 text-sm",
    )


def my_data() -> rx.Component:
    """Return the card to download or delete everything."""
    return card(
        card_title(_("Your data")),
        rx.el.div(
            rx.el.p(
                _("Everything that {product} stores about you, in one JSON file.").format(
                    product=settings().product_name
                ),
                class_name="muted text-sm",
            ),
            link_button(
                _("Download my data"), EXPORT_PATH, icon="download", leaves_app=True, class_name="mt-3", download=True
            ),
        ),
        rx.el.div(
            rx.el.p(
                _(
                    "Delete your account, your wallets and everything else about you. The roles that your wallets "
                    "earned are taken first, as each server's rules say."
                ),
                class_name="muted text-sm",
            ),
            button(
                _("Delete my data"), kind="danger", icon="trash-2", class_name="mt-3", on_click=MyDataState.ask_forget
            ),
            class_name="mt-5 border-t hairline pt-5",
        ),
        _question(),
    )


def _question() -> rx.Component:
    return confirm(
        is_open=MyDataState.asked,
        on_open_change=MyDataState.close_dialog,
        title=_("Delete everything about you?"),
        text=_("Your account, sessions, wallets and choices are deleted at once. It cannot be undone."),
        body=rx.el.div(
            rx.cond(
                MyDataState.ending,
                rx.el.div(rx.el.p(_("Your roles:"), class_name="mt-4 font-medium"), _ending()),
                rx.el.p(
                    _("You have no role from {product}.").format(product=settings().product_name),
                    class_name="muted mt-4",
                ),
            ),
            rx.el.div(
                rx.el.label(
                    sentence(_("Type {word} to confirm"), word=rx.el.strong(CONFIRMATION)),
                    html_for="confirmation",
                    class_name="text-sm font-semibold",
                ),
                text_input("confirmation", value=MyDataState.typed, on_change=MyDataState.type_confirmation),
                class_name="mt-5 flex flex-col gap-1.5",
            ),
        ),
        cancel=button(_("Keep my data"), on_click=MyDataState.close_dialog(False)),
        action=button(
            _("Delete everything"),
            kind="danger",
            busy=MyDataState.working,
            busy_label=_("Deleting..."),
            disabled=MyDataState.typed.strip().lower() != CONFIRMATION,
            on_click=MyDataState.forget,
        ),
    )


def _ending() -> rx.Component:
    return rx.el.ul(rx.foreach(MyDataState.ending, _end), class_name="mt-2 flex flex-col gap-2")


def _end(role: rx.vars.ObjectVar[EndingRole]) -> rx.Component:
    return rx.el.li(
        sentence(
            # Translators: {end} is a later text, such as "ends with the rules of the server".
            _("{role} in {server} {end}."),
            role=role_mark(role.role_name, role.role_color),
            server=role.server_name,
            end=role.text,
        ),
        class_name="muted text-sm",
    )


def farewell() -> rx.Component:
    """Return the screen after everything is deleted."""
    return card(
        empty(
            "circle-check",
            _("Everything about you is deleted"),
            _("You are logged out. Thank you for using {product}.").format(product=settings().product_name),
            button(_("Return to Home"), kind="primary", on_click=log_out()),
            whole_screen=True,
        ),
        rx.cond(
            MyDataState.ending,
            rx.el.div(rx.el.h2(_("What happens to your roles"), class_name="font-medium"), _ending()),
        ),
        on_mount=forget_session(),
        class_name="mx-auto w-full max-w-xl",
    )
