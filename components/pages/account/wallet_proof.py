"""The form that verifies a wallet by its OpenSea bio or by a transaction to itself."""

import reflex as rx

from components.ui.button import button, spinner
from components.ui.card import card, card_title
from components.ui.copy import copyable
from components.ui.effects.every import every
from components.ui.effects.texts import filled, sentence
from components.ui.field import select_field, text_field
from components.ui.placeholders import progress
from locales import _
from state.account.wallet_proof import MARKER_PREFIX, OFFERED_METHODS, TRANSACTION, WalletProofState
from state.core.timing import TRANSACTION_POLL_SECONDS
from state.core.toasts import ToastState

METHOD_NAMES = {"opensea_bio": _("OpenSea Profile Bio"), "transaction": _("Transaction Proof")}


def proof_card() -> rx.Component:
    """Return the form: address, method, instructions, progress and the button."""
    options = [rx.el.option(METHOD_NAMES[method], value=method) for method in OFFERED_METHODS]
    return card(
        rx.window_event_listener(on_visibility_change=WalletProofState.tab_changed),
        card_title(_("Verify New Wallet")),
        rx.el.form(
            text_field(
                _("Wallet Address"),
                "walletAddress",
                class_name="input code",
                spell_check=False,
                placeholder=_("0x... or wallet.eth"),
                value=WalletProofState.address,
                on_change=WalletProofState.enter_address,
                error=WalletProofState.address_fault,
            ),
            _name(),
            select_field(
                _("Verification Method"),
                "verificationMethod",
                *options,
                value=WalletProofState.method,
                on_change=WalletProofState.choose_method,
            ),
            rx.cond(
                WalletProofState.method == TRANSACTION,
                _by_transaction(),
                rx.cond(WalletProofState.memo != "", _not_by_bio(), _by_bio()),
            ),
            button(
                _("Verify Wallet"),
                kind="primary",
                type="submit",
                busy=WalletProofState.pending,
                busy_label=_("Verifying..."),
                disabled=WalletProofState.address == "",
                class_name="w-full",
            ),
            _outcome(),
            on_submit=lambda _form: WalletProofState.verify(),
            class_name="flex flex-col gap-5",
        ),
    )


def _name() -> rx.Component:
    """Return the address of a typed name, which the person has to confirm first."""
    return rx.el.div(
        rx.cond(
            WalletProofState.resolving,
            rx.el.p(
                spinner(),
                filled(_("Looking up {address}..."), address=WalletProofState.address),
                class_name="muted flex items-center gap-2",
            ),
        ),
        rx.cond(
            WalletProofState.named_address != "",
            rx.el.div(
                rx.el.p(
                    sentence(
                        _("{name} stands for this wallet right now:"),
                        name=rx.el.strong(WalletProofState.name, class_name="break-all"),
                    )
                ),
                rx.el.p(WalletProofState.named_address, class_name="code mt-1 break-all text-sm font-semibold"),
                rx.el.p(
                    _("Compare it with your own wallet. What is stored is the address, not the name."),
                    class_name="muted mt-1 text-sm",
                ),
                button(
                    _("Yes, this is my wallet"),
                    kind="primary",
                    icon="check",
                    class_name="btn-sm mt-3",
                    on_click=WalletProofState.confirm_name,
                ),
                class_name="rounded-box border hairline p-4",
            ),
        ),
        rx.cond(
            (WalletProofState.name != "") & (WalletProofState.named_address == ""),
            rx.el.p(
                filled(_("The wallet of {name}, as you confirmed."), name=WalletProofState.name),
                class_name="muted text-sm",
            ),
        ),
        class_name="empty:hidden",
        aria_live="polite",
    )


def _not_by_bio() -> rx.Component:
    """Return why a Solana wallet has no OpenSea bio, and the other method."""
    return rx.el.div(
        rx.el.p(_("This is a Solana address. An OpenSea bio verifies only addresses that start with 0x.")),
        button(
            _("Use Transaction Proof"),
            kind="primary",
            class_name="btn-sm mt-3",
            on_click=WalletProofState.choose_method(TRANSACTION),
        ),
        class_name="rounded-box border hairline p-4",
    )


def _by_bio() -> rx.Component:
    return rx.el.div(
        rx.el.ol(
            rx.el.li(_("Go to the OpenSea profile of this wallet.")),
            rx.el.li(
                sentence(
                    _("Add your code or {marker} to the bio."),
                    marker=rx.cond(
                        WalletProofState.marker != "",
                        rx.el.code(WalletProofState.marker, class_name="code font-semibold"),
                        rx.el.code(f"{MARKER_PREFIX}:<", _("your username"), ">", class_name="code"),
                    ),
                ),
                rx.cond(
                    WalletProofState.code != "",
                    rx.el.div(copyable(WalletProofState.code), class_name="mt-2"),
                    rx.el.p(_("Your code appears here once the address is filled in."), class_name="muted text-sm"),
                ),
            ),
            rx.el.li(_("Save the profile.")),
            rx.el.li(_("Click Verify.")),
            class_name="list-decimal space-y-2 ps-5",
        ),
        rx.el.p(
            _(
                "The code is yours alone: it verifies the wallet only for the account you are logged in with. It does "
                "not verify a smart-contract wallet: use Transaction Proof for a Safe or an ERC-4337 account."
            ),
            class_name="muted mt-3 text-sm",
        ),
        button(
            _("Open OpenSea Profile"),
            icon="external-link",
            disabled=WalletProofState.address == "",
            on_click=rx.redirect(WalletProofState.profile_url, is_external=True),
            class_name="mt-4",
        ),
        rx.cond(
            WalletProofState.shortage != "",
            rx.el.p(WalletProofState.shortage, class_name="mt-4 break-words text-sm font-medium"),
        ),
        class_name="rounded-box border hairline p-4",
    )


def _by_transaction() -> rx.Component:
    return rx.cond(
        WalletProofState.code == "",
        rx.el.p(
            _(
                "What to send appears here once the address is filled in. You sign it in your own wallet app. It goes "
                "from your wallet to the same wallet, so you pay only the chain's fee."
            ),
            class_name="muted rounded-box border hairline p-4",
        ),
        rx.el.div(
            rx.cond(
                WalletProofState.memo != "",
                _memo(),
                rx.cond(
                    WalletProofState.sends,
                    _send(),
                    rx.el.p(_("No chain is set up here, so no transaction can be checked. Use the OpenSea bio.")),
                ),
            ),
            _live(),
            text_field(
                _("Transaction hash or link (optional)"),
                "transactionHash",
                value=WalletProofState.pasted,
                on_change=WalletProofState.paste,
                placeholder=rx.cond(
                    WalletProofState.memo != "",
                    _("A signature, or a page of a block explorer"),
                    _("0x... or a page of a block explorer"),
                ),
                spell_check=False,
                hint=_("We find it automatically. If that takes too long, paste it and click Verify Wallet."),
            ),
            every(TRANSACTION_POLL_SECONDS, WalletProofState.look),
            class_name="flex flex-col gap-5",
        ),
    )


def _send() -> rx.Component:
    """Return what to send on the chosen chain."""
    send = WalletProofState.send
    return rx.el.div(
        select_field(
            _("Chain"),
            "proofChain",
            rx.foreach(WalletProofState.sends, lambda one: rx.el.option(one.title, value=one.chain)),
            value=send.chain,
            on_change=WalletProofState.choose_chain,
            hint=_("Any of them works: choose one with a low fee."),
        ),
        rx.el.dl(
            _line(_("Send to"), _("the same wallet"), copyable(send.recipient, what=_("Send to"))),
            _line(
                _("Amount"), filled(_("exactly, in {coin}"), coin=send.coin), copyable(send.amount, what=_("Amount"))
            ),
            _line(_("In wei"), _("the same amount"), copyable(send.wei, what=_("In wei"))),
            class_name="mt-4 flex flex-col gap-3",
        ),
        rx.el.details(
            rx.el.summary(_("My wallet can send data"), class_name="cursor-pointer font-medium"),
            rx.el.p(
                _("Then send any amount, even 0, with your code as the data of the transaction:"),
                class_name="muted mb-2 mt-2 text-sm",
            ),
            copyable(send.data),
            class_name="mt-4 text-sm",
        ),
        rx.el.details(
            rx.el.summary(_("My wallet is a smart contract"), class_name="cursor-pointer font-medium"),
            rx.el.p(
                _(
                    "From a Safe, send exactly this amount to the Safe itself, in a transaction that you sign and "
                    "execute without a relayer. From an ERC-4337 account, send it to the account itself in a "
                    "UserOperation. The account then counts on that chain only, because another contract can have the "
                    "same address on other chains. You can verify it on each chain."
                ),
                class_name="muted mt-2 text-sm",
            ),
            rx.el.p(
                _(
                    "Other contracts cannot be verified. Delegate such a contract at delegate.xyz to a wallet of "
                    "yours: rules that count delegated tokens then count its tokens."
                ),
                class_name="muted mt-2 text-sm",
            ),
            class_name="mt-4 text-sm",
        ),
        rx.el.p(
            _(
                "The amount is yours alone: it verifies the wallet only for the account you are logged in with. It "
                "returns to you, and you pay only the chain's fee."
            ),
            class_name="muted mt-4 text-sm",
        ),
        class_name="rounded-box border hairline p-4",
    )


def _memo() -> rx.Component:
    """Return what to send on Solana."""
    return rx.el.div(
        rx.el.p(_("On Solana, send any amount from this wallet to itself, with this memo and nothing else in it:")),
        rx.el.div(copyable(WalletProofState.memo), class_name="mt-2"),
        rx.el.p(
            _("The code is yours alone: it verifies the wallet only for the account you are logged in with."),
            class_name="muted mt-3 text-sm",
        ),
        class_name="rounded-box border hairline p-4",
    )


def _line(term: str, more: str | rx.Var[str], value: rx.Component) -> rx.Component:
    return rx.el.div(
        rx.el.dt(term, " ", rx.el.span(more, class_name="muted font-normal"), class_name="mb-1 text-sm font-semibold"),
        rx.el.dd(value),
    )


def _live() -> rx.Component:
    """Return the transaction's progress, updated live."""
    return rx.el.div(
        rx.cond(
            WalletProofState.needed > 0,
            rx.el.div(
                rx.el.p(
                    rx.icon("circle-check", size=18, aria_hidden="true", class_name="text-success"),
                    filled(
                        _("Seen on {chain}: {confirmations} of {needed} confirmations"),
                        chain=WalletProofState.seen_on,
                        confirmations=WalletProofState.confirmations,
                        needed=WalletProofState.needed,
                    ),
                    class_name="flex items-center gap-2 font-medium",
                ),
                rx.el.progress(
                    value=WalletProofState.confirmations,
                    max=WalletProofState.needed,
                    aria_label=_("Confirmations"),
                    class_name="progress progress-success mt-2 w-full",
                ),
                rx.el.p(
                    _("You can leave this page: we verify the wallet automatically."), class_name="muted mt-2 text-sm"
                ),
            ),
            rx.cond(
                WalletProofState.hopeless,
                rx.el.p(WalletProofState.remark, class_name="font-medium"),
                rx.el.div(
                    progress(_("Waiting for your transaction. We check every 5 seconds.")),
                    rx.cond(
                        WalletProofState.remark != "",
                        rx.el.p(WalletProofState.remark, class_name="mt-2 break-words text-sm font-medium"),
                    ),
                ),
            ),
        ),
        aria_live="polite",
    )


def _outcome() -> rx.Component:
    return rx.el.div(
        # The toast says the same first; this note replaces it once it is gone.
        rx.cond(
            (WalletProofState.note != "") & (ToastState.title == ""),
            rx.el.p(WalletProofState.note, class_name="mb-3 break-words"),
        ),
        rx.cond(
            WalletProofState.linked_address != "",
            rx.el.div(
                button(_("Verify that wallet instead"), class_name="btn-sm", on_click=WalletProofState.claim_linked),
                button(
                    _("Use Transaction Proof"),
                    class_name="btn-sm",
                    on_click=WalletProofState.choose_method(TRANSACTION),
                ),
                class_name="flex flex-wrap gap-3",
            ),
        ),
        rx.cond(WalletProofState.looking, progress(_("Checking again automatically. You can leave this page open."))),
        class_name="empty:hidden",
        aria_live="polite",
    )
