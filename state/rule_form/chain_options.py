"""The chains of the rule form, and which of them rules can use here."""

from dataclasses import dataclass

from locales import _
from services.core.chain_names import chain_title, form_order
from services.rules import draft as rule_draft


@dataclass(frozen=True)
class ChainOptionView:
    """A chain to choose, with the reason if no rule can use it."""

    name: str
    label: str
    offered: bool


CHAIN_OPTIONS = [ChainOptionView(chain, chain_title(chain), True) for chain in form_order()]


def chain_options() -> list[ChainOptionView]:
    """Return the chains in the form's order, each with whether rules can use it here."""
    return [_option(chain) for chain in form_order()]


def _option(chain: str) -> ChainOptionView:
    reason = rule_draft.chain_refusal(chain)
    title = chain_title(chain)
    return ChainOptionView(
        chain, _("{chain} – no node is set here").format(chain=title) if reason else title, not reason
    )
