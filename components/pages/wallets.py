"""Proving a wallet by its marketplace profile, and the wallets that are proven."""

import reflex as rx

from components.layout.frame import member_frame, page_head, visitor_frame
from components.ui.badge import badge
from components.ui.button import button, link_button
from components.ui.card import card, card_title
from components.ui.copy import copyable
from components.ui.dialog import confirm
from components.ui.empty import empty, progress, skeleton
from components.ui.field import field, select_input
from settings import settings
from state.wallets import OFFERED_METHODS, WalletRowView, WalletsState

METHOD_NAMES = {"opensea_bio": "OpenSea Profile Bio", "transaction": "Transaction Proof"}


def wallets() -> rx.Component:
    """The form on the left, the list on the right."""
    return member_frame(
        page_head(
            "Wallet Verification",
            "Prove that a wallet is yours. Nothing is connected and nothing is signed.",
            link_button("Back to Dashboard", "/dashboard", kind="quiet", icon="arrow-left"),
        ),
        rx.el.div(_form_card(), _list_card(), class_name="grid items-start gap-6 lg:grid-cols-2"),
        confirm(
            is_open=WalletsState.asked_id != 0,
            on_open_change=WalletsState.keep,
            title=f"Remove {WalletsState.asked_short}?",
            text="It no longer counts for your roles. Roles that depend on it are taken back; you can prove it again.",
            cancel=button("Keep it", kind="quiet", on_click=WalletsState.keep(False)),
            action=button("Remove wallet", kind="danger", on_click=WalletsState.remove),
        ),
    )


def wallets_left() -> rx.Component:
    """What stays when the session ends while the screen is open."""
    return visitor_frame(
        rx.el.section(
            empty(
                "log-in",
                "Please log in",
                "Your session has ended. Log in again to verify your wallets.",
                link_button("Go to Login", "/login", kind="primary", leaves_app=True),
            ),
            class_name="surface w-full max-w-lg p-6",
        ),
        class_name="tide grid place-items-center px-4 py-16",
    )


def _form_card() -> rx.Component:
    options = [rx.el.option(METHOD_NAMES[method], value=method) for method in OFFERED_METHODS]
    return card(
        card_title("Verify New Wallet"),
        rx.el.form(
            field(
                "Wallet Address",
                rx.el.input(
                    id="walletAddress",
                    name="walletAddress",
                    class_name="input code",
                    auto_complete="off",
                    spell_check=False,
                    placeholder="0x... or wallet.eth",
                    value=WalletsState.address,
                    on_change=WalletsState.enter_address,
                ),
                name="walletAddress",
            ),
            field(
                "Verification Method",
                select_input(
                    "verificationMethod", *options, value=WalletsState.method, on_change=WalletsState.choose_method
                ),
                name="verificationMethod",
            ),
            _instructions(),
            _outcome(),
            button(
                "Verify Wallet",
                kind="primary",
                type="submit",
                busy=WalletsState.pending,
                busy_label="Verifying...",
                disabled=WalletsState.address == "",
                class_name="w-full",
            ),
            on_submit=lambda _form: WalletsState.verify(),
            class_name="flex flex-col gap-5",
        ),
    )


def _instructions() -> rx.Component:
    return rx.el.div(
        rx.el.ol(
            rx.el.li("Go to the OpenSea profile of this wallet."),
            rx.el.li(
                "Add your code or ",
                rx.cond(
                    WalletsState.marker != "",
                    rx.el.code(WalletsState.marker, class_name="code font-semibold"),
                    rx.el.code(f"{settings().product_name.lower()}:<your username>", class_name="code"),
                ),
                " to the bio.",
                rx.cond(
                    WalletsState.code != "",
                    rx.el.div(copyable(WalletsState.code), class_name="mt-2"),
                    rx.el.p("Your code appears here once the address is filled in.", class_name="muted text-sm"),
                ),
            ),
            rx.el.li("Save the profile."),
            rx.el.li("Click Verify."),
            class_name="list-decimal space-y-2 pl-5",
        ),
        rx.el.p(
            "The code is yours alone: it proves the wallet only for the account you are signed in with.",
            class_name="muted mt-3 text-sm",
        ),
        button(
            "Open OpenSea Profile",
            icon="external-link",
            disabled=WalletsState.address == "",
            on_click=rx.redirect(WalletsState.profile_url, is_external=True),
            class_name="mt-4",
        ),
        class_name="rounded-box border hairline p-4",
    )


def _outcome() -> rx.Component:
    return rx.el.div(
        rx.cond(WalletsState.note != "", rx.el.p(WalletsState.note, class_name="mb-3")),
        rx.cond(WalletsState.looking, progress("Looking again by ourselves. You can leave this page open.")),
        class_name="empty:hidden",
        aria_live="polite",
    )


def _list_card() -> rx.Component:
    return card(
        card_title("Verified Wallets"),
        rx.cond(
            WalletsState.loaded,
            rx.cond(
                WalletsState.rows,
                rx.el.ul(rx.foreach(WalletsState.rows, _wallet), class_name="divide-y divide-base-300"),
                empty(
                    "wallet",
                    "No verified wallets yet",
                    "Verify your first wallet to start using NFT verification rules",
                ),
            ),
            skeleton("h-32"),
        ),
    )


def _wallet(wallet: rx.vars.ObjectVar[WalletRowView]) -> rx.Component:
    return rx.el.li(
        rx.el.div(
            rx.el.div(
                rx.el.span(wallet.short, class_name="code font-semibold", title=wallet.address),
                badge(wallet.chain, "info"),
                class_name="flex flex-wrap items-center gap-2",
            ),
            rx.el.p(f"Verified via {wallet.method}", class_name="muted mt-1 text-sm"),
            rx.el.p(wallet.since, class_name="muted text-sm"),
        ),
        button(
            "Remove",
            kind="quiet",
            icon="trash-2",
            class_name="btn-sm",
            on_click=WalletsState.ask_remove(wallet.id),
            aria_label=f"Remove {wallet.short}",
        ),
        key=wallet.id,
        class_name="flex items-center justify-between gap-4 py-4",
    )
