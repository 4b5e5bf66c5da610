"""One requirement of a rule with the evidence for its answer, as people see it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from services.core.addresses import shorten
from services.core.json_view import Internal, json_view
from services.holdings.evaluate import Reading, WalletShare
from services.holdings.last_seen import Remembered
from services.rules.expression import Requirement
from services.rules.wording import Names, in_words

Amount = int | str
"""A number of tokens, or a decimal text in whole coins."""


@json_view
@dataclass(frozen=True, slots=True)
class RequirementView:
    """One requirement and the last known holdings; `wallet` only for those who may see it."""

    text: str
    needed: Amount
    held: Amount | None
    wallet: str | None
    chain: str
    block: int | None
    source: str | None
    observed_at: datetime | None
    outcome: str
    reason: str | None
    most: Amount | None
    """The most that the member may hold; None without a limit."""
    amounts: Internal[tuple[str, str]]
    """What is needed and what is held, as people read it."""


def view_of(leaf: Requirement, held: Remembered, names: Names, *, shared: bool) -> RequirementView:
    """Return what is remembered about a requirement; `shared` shows the wallets."""
    oldest = held.oldest
    return RequirementView(
        text=in_words(leaf, names),
        needed=_told(leaf, leaf.least),
        held=None if held.held is None else _told(leaf, held.held),
        wallet=_wallets(held.holding) if shared else None,
        chain=leaf.chain,
        block=oldest.block if oldest else None,
        source=oldest.source if oldest else None,
        observed_at=oldest.observed_at if oldest else None,
        outcome=held.answer.value,
        reason=held.reason,
        most=_most(leaf),
        amounts=_amounts(leaf, held.held),
    )


def view_of_reading(reading: Reading, names: Names, *, shared: bool = True) -> RequirementView:
    """Return a reading that was just made; `shared` shows the wallets that hold something."""
    leaf = reading.requirement
    return RequirementView(
        text=in_words(leaf, names),
        needed=_told(leaf, reading.needed),
        held=None if reading.held is None else _told(leaf, reading.held),
        wallet=_wallets([part for part in reading.parts if part.amount]) if shared else None,
        chain=leaf.chain,
        block=reading.block,
        source=reading.source,
        observed_at=reading.observed_at,
        outcome=reading.answer.value,
        reason=reading.reason,
        most=_most(leaf),
        amounts=_amounts(leaf, reading.held),
    )


def _told(leaf: Requirement, amount: int) -> Amount:
    """Return a number of tokens; an amount of a type that has its own fields as a text, which loses no digit."""
    return amount if leaf.details is None else leaf.details.shown(amount)


def _most(leaf: Requirement) -> Amount | None:
    most = leaf.most
    return None if most is None else _told(leaf, most)


def _wallets(parts: Sequence[WalletShare]) -> str | None:
    return ", ".join(map(_shown, parts)) or None


def _shown(part: WalletShare) -> str:
    """Return a shortened wallet; a vault with the wallet that it delegated to."""
    if not part.through:
        return shorten(part.address)
    return f"{shorten(part.through)}, through delegation from {shorten(part.address)}"


def _amounts(leaf: Requirement, held: int | None) -> tuple[str, str]:
    shown = leaf.details.shown if leaf.details is not None else str
    least, most = shown(leaf.least), leaf.most
    return least if most is None else f"{least} to {shown(most)}", "not known" if held is None else shown(held)
