"""One requirement of a rule with the evidence for its answer, as people see it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from locales import _, first_of, listed
from locales.stored_texts import said
from services.core.addresses import shorten
from services.core.json_view import Internal, json_view
from services.holdings.evaluate import Reading
from services.holdings.last_known import Remembered
from services.holdings.wallet_shares import WalletShare
from services.rules.expression import Amount, Requirement
from services.rules.wording import Names, in_words

MOST_NAMED = 3
"""Wallets that a sentence names: a member may have verified many."""


@json_view
class RequirementView:
    """One requirement and the last known holdings.

    `wallet` is set only for people who may see it. For anybody else a large `held` has
    three significant digits, and `reason` hides token ids: both can name the wallet.
    Amounts are numbers of tokens, or decimal texts: those of coins, and all from 2^53 on.
    """

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
    wallets: Internal[str] = ""
    """The first MOST_NAMED wallets of `wallet` and how many more there are, as people read it."""


def view_of(leaf: Requirement, held: Remembered, names: Names, *, shared: bool) -> RequirementView:
    """Return what is remembered about a requirement; `shared` shows the wallets, exact amounts and token ids."""
    reading = Reading(leaf, held.answer, held.held, reason=held.reason)
    if (oldest := held.oldest) is not None:
        reading = replace(reading, block=oldest.block, source=oldest.source, observed_at=oldest.observed_at)
    return _view(reading, held.holding, names, shared=shared)


def view_of_reading(reading: Reading, names: Names, *, shared: bool = True) -> RequirementView:
    """Return a reading that was just made; `shared` shows exact amounts, token ids and the wallets with something."""
    return _view(reading, [part for part in reading.parts if part.amount], names, shared=shared)


def _view(reading: Reading, wallets: Sequence[WalletShare], names: Names, *, shared: bool) -> RequirementView:
    leaf, most = reading.requirement, reading.requirement.most
    named = [_shown(part) for part in (wallets if shared else ())]
    seen = reading if shared else reading.without_wallet()
    return RequirementView(
        text=in_words(leaf, names),
        needed=leaf.in_json(reading.needed),
        held=None if seen.held is None else leaf.in_json(seen.held),
        wallet=", ".join(named) or None,
        chain=leaf.chain,
        block=reading.block,
        source=reading.source,
        observed_at=reading.observed_at,
        outcome=reading.answer.value,
        # A reason that was stored, or is about to be, is in English.
        reason=said(seen.reason) if seen.reason else seen.reason,
        most=None if most is None else leaf.in_json(most),
        amounts=_amounts(leaf, seen.held, is_rounded=seen.held != reading.held),
        wallets=listed(first_of(named, MOST_NAMED)) if named else "",
    )


def _shown(part: WalletShare) -> str:
    """Return a shortened wallet; for a vault, with the wallet that it delegated to."""
    if not part.through:
        return shorten(part.address)
    told = _("{wallet}, through delegation from {vault}")
    return told.format(wallet=shorten(part.through), vault=shorten(part.address))


def _amounts(leaf: Requirement, held: int | None, *, is_rounded: bool) -> tuple[str, str]:
    least, most = leaf.spoken(leaf.least), leaf.most
    needed = least if most is None else _("{first} to {last}").format(first=least, last=leaf.spoken(most))
    if held is None:
        return needed, _("not known")
    # Translators: {amount} is a rounded number, such as 1,200.
    return needed, _("about {amount}").format(amount=leaf.spoken(held)) if is_rounded else leaf.spoken(held)
