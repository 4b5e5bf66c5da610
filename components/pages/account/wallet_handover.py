"""The card about two Discord accounts of one person: a code that hands wallets over, and entering one."""

import reflex as rx

from components.ui.button import button
from components.ui.card import card, card_title
from components.ui.dialog import confirm
from components.ui.field import select_field, text_field
from locales import _
from state.account.wallet_handover import HandoverState
from state.account.wallets import WalletsState


def handover_card() -> rx.Component:
    """Return the form that hands wallets over to another account, or takes them over from one."""
    return card(
        card_title(
            _("Another Discord account of yours"),
            _(
                "Hand wallets over to it: make a code here, log in to the other account, and enter it there. Your "
                "choices and payout addresses come along. Where both accounts have wallets, the stricter choice counts."
            ),
        ),
        rx.el.div(
            rx.cond(WalletsState.rows, rx.cond(HandoverState.giving, _give(), _begin())),
            _take(),
            class_name="grid grid-cols-1 gap-6",
        ),
        confirm(
            is_open=HandoverState.asked != "",
            on_open_change=HandoverState.close_dialog,
            title=HandoverState.asked,
            text=_(
                "They count for this account from now on. The other account loses the roles that only they earned, as "
                "each server's rules say."
            ),
            cancel=button(_("Not now"), kind="quiet", on_click=HandoverState.close_dialog(False)),
            action=button(_("Take them over"), kind="primary", on_click=HandoverState.take),
        ),
    )


def _begin() -> rx.Component:
    # The list beside this card already shows the wallets; a second list is only for people who hand them over.
    return rx.el.div(button(_("Choose wallets to hand over"), class_name="btn-sm", on_click=HandoverState.begin))


def _give() -> rx.Component:
    return rx.el.div(
        select_field(
            _("Wallets to hand over"),
            "handoverWallet",
            rx.el.option(_("All wallets of this account"), value=""),
            rx.foreach(WalletsState.rows, lambda wallet: rx.el.option(wallet.short, value=wallet.id.to(str))),
            value=HandoverState.wallet,
            on_change=HandoverState.set_wallet,
        ),
        rx.cond(
            HandoverState.code != "",
            rx.el.p(HandoverState.code, class_name="code mt-3 text-lg font-semibold", role="status"),
        ),
        rx.cond(HandoverState.valid != "", rx.el.p(HandoverState.valid, class_name="muted mt-1 text-sm")),
        rx.el.div(
            button(_("Make a code"), class_name="btn-sm", on_click=HandoverState.offer),
            rx.cond(
                HandoverState.code != "",
                button(_("Withdraw it"), kind="quiet", class_name="btn-sm", on_click=HandoverState.withdraw),
            ),
            class_name="mt-3 flex flex-wrap gap-2",
        ),
    )


def _take() -> rx.Component:
    return rx.el.div(
        text_field(
            _("Code of your other account"),
            "handoverCode",
            value=HandoverState.entered,
            on_change=HandoverState.set_entered,
            error=HandoverState.fault,
        ),
        button(
            _("Look at it"),
            class_name="btn-sm mt-3",
            busy=HandoverState.working,
            disabled=HandoverState.entered == "",
            on_click=HandoverState.look,
        ),
    )
