"""The addresses of a list, pasted or from a file, with their mistakes line by line."""

import reflex as rx

from locales import _, forms
from state.dashboard.server_page import ServerPageState
from state.rule_form.rule_form import RuleFormState

ADDRESSES = "addresses"
"""The id of the text area (assets/screens/addresses.js)."""

_WORDS = {
    "large": _("The list is larger than 2 MiB."),
    "unsent": _("The list could not be sent. Please try again."),
    "unread": _("The list could not be read."),
    "reading": _("Reading the list..."),
    "use": _("Use these addresses"),
    "choose": _("Choose a CSV file"),
    "stored": forms("{count} address is on the list.", "{count} addresses are on the list."),
    "download": _("Download"),
    "wrong": _("What is wrong in the list"),
    "line": _("Line {line}: {reason} ({text})"),
    "more": _("And {count} more."),
}


def _stored(name: rx.Var[str], count: rx.Var[int]) -> tuple[rx.Var[str], rx.Var[int]]:
    return name, count


class _Addresses(rx.Component):
    """Sends the addresses in a call of their own, and passes on the name and the length of the stored list."""

    library = "$/public/screens/addresses.js"
    tag = "Addresses"

    place: rx.Var[str]
    server: rx.Var[int]
    name: rx.Var[str]
    count: rx.Var[str]
    label: rx.Var[str]
    hint: rx.Var[str]
    words: rx.Var[dict[str, str]]

    on_stored: rx.EventHandler[_stored]


def addresses() -> rx.Component:
    """Return the entry of the open condition's list."""
    return _Addresses.create(
        place=f"{RuleFormState.turn}:{RuleFormState.open}",
        server=ServerPageState.server_id,
        name=RuleFormState.details["list"],
        count=RuleFormState.details["count"],
        label=_("Addresses"),
        hint=_(
            "Up to 20,000 EVM and Solana addresses: one or more a line, or a CSV file. An EVM address counts on "
            "every EVM chain. A vault that delegates to a member's wallet does not count: list the wallet itself."
        ),
        words=_WORDS,
        on_stored=lambda name, count: RuleFormState.take_list(RuleFormState.open, name, count),
        key=RuleFormState.open,
    )
