"""Coins: a minimum and a maximum amount of an ERC-20 or SPL coin, or of a chain's own coin.

Amounts are written in whole coins and compared in the coin's smallest unit, as integers. The coin's decimals are read
from its contract when the rule is saved, and stored with the condition, so that its meaning never changes. Whether a
member has enough is decided in `services/holdings/evaluate.py`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Self

from gateways.chains.coin_facts import MOST_DECIMALS
from locales import N_, _, decimal
from services.core.errors import FieldRefused
from services.rules.types.declaration import DetailField, Details, ExpressionRefused

MOST_UNITS = 2**256 - 2
"""The largest balance that is read exactly."""
LONGEST = 200
_AMOUNT = re.compile(r"([0-9]{1,80})(?:\.([0-9]{1,80}))?")
_FINEST = 80
MINIMUM, MAXIMUM = "min", "max"


@dataclass(frozen=True, slots=True)
class CoinAmount(Details):
    """The least and the most that a member may have of a coin, in whole coins; None for no bound.

    `decimals` are the coin's own, None until its contract was read.
    """

    least: str | None = None
    most: str | None = None
    decimals: int | None = None

    FIELDS: ClassVar[tuple[DetailField, ...]] = (
        DetailField(
            MINIMUM, N_("Minimum Amount"), "number", N_("In whole coins, over all wallets of a member."), "100"
        ),
        DetailField(MAXIMUM, N_("Maximum Amount"), "number", N_("Leave it empty for no limit."), "250.5"),
    )
    STORED: ClassVar[tuple[str, ...]] = ("decimals",)

    @classmethod
    def parse(cls, node: Mapping[str, Any]) -> Self:
        """Read `{min?, max?}`, decimal texts in whole coins, and the stored `decimals`. Raises ExpressionRefused."""
        decimals = node.get("decimals")
        if decimals is not None and (
            not isinstance(decimals, int) or isinstance(decimals, bool) or not 0 <= decimals <= MOST_DECIMALS
        ):
            raise ExpressionRefused(
                _("decimals must be a whole number from 0 to {most_decimals}.").format(most_decimals=MOST_DECIMALS),
                "decimals",
            )
        return cls(_text(node, MINIMUM), _text(node, MAXIMUM), decimals)

    def document(self) -> dict[str, Any]:
        """Return what `parse` reads back."""
        found = {MINIMUM: self.least, MAXIMUM: self.most, "decimals": self.decimals}
        return {name: value for name, value in found.items() if value is not None}

    def checked(self, chain: str, contract: str) -> Self:
        """Return the amounts in their shortest form. Raises FieldRefused."""
        least, most = self._amount(MINIMUM, self.least), self._amount(MAXIMUM, self.most)
        if least is None and most is None:
            raise FieldRefused(MINIMUM, _("Enter at least how many coins, at most how many, or both."))
        if least == "0" and most is None:
            raise FieldRefused(MINIMUM, _("Everybody has at least 0 coins. Enter a larger amount."))
        if least is not None and most is not None and units(most, _FINEST) < units(least, _FINEST):
            raise FieldRefused(MAXIMUM, _("The most must not be less than the least."))
        return replace(self, least=least, most=most)

    def _amount(self, name: str, given: str | None) -> str | None:
        text = (given or "").strip()
        if not text:
            return None
        found = _AMOUNT.fullmatch(text)
        if found is None:
            raise FieldRefused(name, _("An amount is a number of whole coins, such as 100 or 0.5."))
        whole, part = found[1].lstrip("0") or "0", (found[2] or "").rstrip("0")
        if self.decimals is not None and len(part) > self.decimals:
            raise FieldRefused(name, _too_fine(self.decimals))
        if units(whole, self.decimals or 0) > MOST_UNITS:
            raise FieldRefused(name, _("No wallet can hold so much."))
        return f"{whole}.{part}" if part else whole

    def bounds(self) -> tuple[int, int | None]:
        """Return the least and the most in the coin's smallest unit. Without `decimals` they mean nothing."""
        least = units(self.least, self.decimals or 0) if self.least is not None else 0
        return least, units(self.most, self.decimals or 0) if self.most is not None else None

    def shown(self, amount: int) -> str:
        """Return an amount in the smallest unit as whole coins, such as `0.5`."""
        return whole_coins(amount, self.decimals or 0)

    def spoken(self, amount: int) -> str:
        """Return an amount in the smallest unit as whole coins, with the comma of the reader's language."""
        return decimal(self.shown(amount))

    def words(self, place: str, *, holds: bool = True) -> str:
        """Return the condition, or its opposite, as a sentence about a coin on a chain."""
        least, most = self.least, self.most
        if least is None and most is None:
            # Translators: the opposite of "An amount of {coin}".
            other = _("Another amount of {coin}")
            # Translators: {coin} is such as "USDC on Base".
            said = _("An amount of {coin}") if holds else other
        elif least in {None, "0"} and most == "0":
            # Translators: any amount but none, as in "Some USDC on Base".
            some = _("Some {coin}")
            said = _("No {coin}") if holds else some
        elif least == most:
            said = _("Exactly {most} of {coin}") if holds else _("Not exactly {most} of {coin}")
        elif least is None:
            said = _("At most {most} of {coin}") if holds else _("More than {most} of {coin}")
        elif most is None:
            said = _("At least {least} of {coin}") if holds else _("Less than {least} of {coin}")
        else:
            said = _("Between {least} and {most} of {coin}") if holds else _("Not between {least} and {most} of {coin}")
        return said.format(coin=place, least=least and decimal(least), most=most and decimal(most))

    def name(self, chain: str, collection: str) -> str:
        """Return the name of a rule with this condition alone; empty until the coin and an amount are known."""
        least, most = (self.least or "").strip(), (self.most or "").strip()
        if not collection or not (least or most):
            return ""
        if not least:
            return f"No {collection}" if most == "0" else f"Up to {most} {collection}"
        return f"{least} {collection}" if not most or most == least else f"{least} to {most} {collection}"


@lru_cache(maxsize=4_000)
def units(amount: str, decimals: int) -> int:
    """Return an amount of whole coins in the smallest unit; digits that are finer than this unit are dropped."""
    whole, _, part = amount.partition(".")
    return int(whole) * 10**decimals + int(part[:decimals].ljust(decimals, "0") or "0")


def whole_coins(amount: int, decimals: int) -> str:
    """Return an amount in the smallest unit as whole coins, such as `0.5`."""
    if not decimals:
        return str(amount)
    digits = str(amount).rjust(decimals + 1, "0")
    return f"{digits[:-decimals]}.{digits[-decimals:]}".rstrip("0").rstrip(".")


def _too_fine(decimals: int) -> str:
    if not decimals:
        return _("This coin has no decimals: enter a whole number.")
    return _("This coin has {decimals} decimals, so an amount has at most {decimals} digits after the point.").format(
        decimals=decimals
    )


def _text(node: Mapping[str, Any], name: str) -> str | None:
    given = node.get(name)
    if given is None:
        return None
    if isinstance(given, int) and not isinstance(given, bool):
        return str(given)
    if not isinstance(given, str) or len(given) > LONGEST:
        raise ExpressionRefused(_('{name} must be a decimal number in quotes, such as "0.5".').format(name=name), name)
    return given.strip() or None
