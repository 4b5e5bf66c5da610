"""The wallets screen: the list of verified wallets beside the form."""

import reflex as rx

from components.layout.ended_session import ended_session, log_in_again
from components.layout.frame import member_frame, page_head
from components.pages.account.wallet_handover import handover_card
from components.pages.account.wallet_proof import proof_card
from components.ui.badge import badge
from components.ui.button import button, link_button
from components.ui.card import card, card_title
from components.ui.dialog import confirm
from components.ui.effects.texts import filled
from components.ui.placeholders import empty, once_read, skeleton
from locales import _
from state.account.wallet_proof import WalletProofState
from state.account.wallets import WalletRowView, WalletsState

LOAD = (WalletProofState.load, WalletsState.load)


def wallets() -> rx.Component:
    """Return the form on the left and the list on the right."""
    return member_frame(
        rx.window_event_listener(on_visibility_change=WalletsState.tab_changed),
        page_head(
            _("Wallet Verification"),
            _("Verify that a wallet is yours, without connecting it."),
            link_button(_("Back to Dashboard"), "/dashboard", kind="quiet", icon="arrow-left"),
        ),
        rx.el.div(
            proof_card(),
            rx.el.div(
                _list_card(),
                # Shown earlier, the card would be moved by the list above it.
                rx.cond(WalletsState.loaded | WalletsState.failed, handover_card()),
                class_name="grid grid-cols-1 gap-6",
            ),
            class_name="grid grid-cols-1 items-start gap-6 lg:grid-cols-[1.15fr_1fr]",
        ),
        confirm(
            is_open=WalletsState.asked_id != 0,
            on_open_change=WalletsState.close_dialog,
            title=filled(_("Remove {wallet}?"), wallet=WalletsState.asked_short),
            text=(
                _(
                    "It no longer counts for your roles. Roles that only this wallet earned are taken as each server's "
                    "rules say: at once, or after a grace time. You can verify it again at any time."
                )
            ),
            cancel=button(_("Keep it"), kind="quiet", on_click=WalletsState.close_dialog(False)),
            action=button(_("Remove wallet"), kind="danger", on_click=WalletsState.remove),
        ),
    )


def wallets_left() -> rx.Component:
    """Return the screen for a session that ends while it is open."""
    text = _("Your session has ended. Log in again to verify your wallets.")
    return ended_session(log_in_again("log-in", _("Please log in"), text))


def _list_card() -> rx.Component:
    return card(
        card_title(_("Verified Wallets")),
        once_read(
            WalletsState.loaded,
            WalletsState.failed,
            WalletsState.load,
            rx.cond(
                WalletsState.rows,
                rx.el.ul(rx.foreach(WalletsState.rows, _wallet), class_name="divide-y divide-base-300"),
                empty(
                    "wallet",
                    _("No verified wallets yet"),
                    _("Verify your first wallet to start using NFT verification rules"),
                ),
            ),
            skeleton("h-32"),
            in_card=True,
        ),
    )


def _wallet(wallet: rx.vars.ObjectVar[WalletRowView]) -> rx.Component:
    return rx.el.li(
        rx.el.div(
            rx.el.div(
                rx.el.div(
                    rx.el.span(wallet.short, class_name="code font-semibold", title=wallet.address),
                    badge(wallet.chain, "info"),
                    class_name="flex flex-wrap items-center gap-2",
                ),
                rx.el.p(filled(_("Verified via {method}"), method=wallet.method), class_name="muted mt-1 text-sm"),
                rx.cond(
                    wallet.only_on != "",
                    rx.el.p(
                        filled(_("A smart-contract wallet: it counts on {chain} only."), chain=wallet.only_on),
                        class_name="muted text-sm",
                    ),
                ),
                class_name="min-w-0",
            ),
            button(
                _("Remove"),
                kind="quiet",
                icon="trash-2",
                class_name="btn-sm",
                on_click=WalletsState.ask_remove(wallet.id),
                aria_label=filled(_("Remove {name}"), name=wallet.short),
            ),
            class_name="flex items-center justify-between gap-4",
        ),
        rx.el.div(
            rx.el.p(wallet.since, class_name="muted shrink-0"),
            # The name arrives late: on a line of its own it would move the buttons.
            rx.cond(
                wallet.name != "",
                rx.el.p(wallet.name, dir="auto", class_name="cut-name font-medium", title=wallet.name),
            ),
            class_name="flex gap-3 text-sm",
        ),
        key=wallet.id,
        class_name="py-4 first:pt-1 last:pb-0",
    )
