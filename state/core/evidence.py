"""One requirement with its evidence, as the screens show it."""

from dataclasses import dataclass

from locales import _, number, series
from services.core.chain_names import chain_title
from services.core.relative_times import ago
from services.holdings.requirement_view import RequirementView


@dataclass(frozen=True)
class RequirementLineView:
    """One requirement with the last evidence; `outcome` is yes, no or unknown, `seen` where and when."""

    text: str
    outcome: str
    amount: str
    seen: str
    wallet: str


def line_of(one: RequirementView) -> RequirementLineView:
    """Return a requirement with its evidence in words."""
    needed, held = one.amounts
    amount = _("Holds {held}, needs {needed}").format(held=held, needed=needed)
    if one.reason:
        amount += f" ({one.reason})"
    on_chain = _("Read on {place}").format(place=chain_title(one.chain))
    place = on_chain if one.source is None else _("Read from {source}").format(source=one.source)
    seen = ""
    if one.observed_at and one.chain:
        at = [] if one.block is None else [_("block {block}").format(block=number(one.block))]
        seen = series([place, *at, ago(one.observed_at)])
    return RequirementLineView(one.text, one.outcome, amount, seen, one.wallets)
