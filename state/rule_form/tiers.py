"""Further tiers of a new rule: each becomes a rule of its own, with the same condition, other amounts, another role."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import reflex as rx

from locales import _
from services.core.actors import Actor
from services.rules.draft import LONGEST_NAME, RuleDraft
from state.core.gate import signed_in
from state.rule_form.rule_fault import NO_FAULT, RuleFault

MOST_TIERS = 10
LONGEST = 9
"""Most digits of an amount."""
LEAST, MOST, ROLE = "least", "most", "role"
"""The fields of a tier."""


@dataclass(frozen=True)
class TierView:
    """A tier as it is entered: `least` to `most` tokens give a role; an empty `most` means no limit."""

    number: int
    title: str = ""
    least: str = ""
    most: str = ""
    role: str = ""


class TierList(rx.State, mixin=True):
    """The tiers after the first one. A form that uses them implements `_recheck`."""

    tiers: list[TierView] = []
    tiers_added: int = 0
    """Changes with each tier that the person adds."""
    first_of_added: str = ""
    """The name of the first control of the tier that was added last."""

    def _recheck(self) -> None:
        """React to a changed tier."""
        raise TypeError("a form says what depends on its fields")

    @signed_in
    async def add_tier(self, actor: Actor) -> None:
        """Add a tier that begins where the last one ends."""
        if len(self.tiers) < MOST_TIERS - 1:
            before = self.tiers[-1].most if self.tiers else self._first_most()
            number = max((one.number for one in self.tiers), default=1) + 1
            least = str(int(before) + 1) if before.isascii() and before.isdigit() else ""
            self._set_tiers([*self.tiers, TierView(number, least=least)])
            self.tiers_added, self.first_of_added = self.tiers_added + 1, tier_control(number, LEAST)

    @signed_in
    async def remove_tier(self, actor: Actor, number: int) -> None:
        """Remove a tier."""
        self._set_tiers([one for one in self.tiers if one.number != number])

    @signed_in
    async def enter_tier(self, actor: Actor, number: int, name: str, value: str) -> None:
        """Change the first or the last amount of a tier, or its role."""
        if name in {LEAST, MOST, ROLE}:
            entered = {name: value.strip()[:32]}
            self._set_tiers([replace(one, **entered) if one.number == number else one for one in self.tiers])

    def _set_tiers(self, tiers: list[TierView]) -> None:
        self.tiers = [
            replace(one, title=_("Tier {number}").format(number=place)) for place, one in enumerate(tiers, start=2)
        ]
        self._recheck()

    def _first_most(self) -> str:
        """Return the maximum of the first tier as it is entered."""
        raise TypeError("a form says where its first tier ends")


def tier_control(number: int | rx.Var[int], name: str) -> str:
    """Return the name of the control for this field of a tier."""
    return f"tier-{number}-{name}"


def tier_fault(first: RuleDraft, tiers: Sequence[TierView]) -> RuleFault:
    """Return what is wrong with the tiers after the first one; NO_FAULT if nothing is."""
    before, most = first.max_tokens, "maxTokens"
    for place, tier in enumerate(tiers, start=2):
        if not isinstance(before, int):
            said = _("Tier {place} needs a maximum, because tier {next} follows it.")
            return RuleFault(said.format(place=place - 1, next=place), field=most)
        for name, amount in ((LEAST, tier.least), (MOST, tier.most or "0")):
            if not (amount.isascii() and amount.isdigit() and len(amount) <= LONGEST):
                said = _("Tier {place}: enter whole numbers. Leave the maximum empty for no limit.")
                return RuleFault(said.format(place=place), field=tier_control(tier.number, name))
        if int(tier.least) <= before:
            said = _("Tier {place} begins at {least}, but tier {former} goes to {most}.")
            said = said.format(place=place, least=tier.least, former=place - 1, most=before)
            return RuleFault(said, field=tier_control(tier.number, LEAST))
        most = tier_control(tier.number, MOST)
        if tier.most and int(tier.most) < int(tier.least):
            return RuleFault(_("Tier {place}: the maximum is below the minimum.").format(place=place), field=most)
        if not tier.role:
            role = tier_control(tier.number, ROLE)
            return RuleFault(_("Tier {place}: choose a role.").format(place=place), field=role)
        before = int(tier.most) if tier.most else None
    return NO_FAULT


def drafts(first: RuleDraft, tiers: Sequence[TierView], name: str) -> list[RuleDraft]:
    """Return the rules of all tiers; `name` is the name of the condition without amounts."""
    return [first, *(_draft(first, tier, name) for tier in tiers)]


def _draft(first: RuleDraft, tier: TierView, name: str) -> RuleDraft:
    most = int(tier.most) if tier.most else None
    return replace(
        first, min_tokens=int(tier.least), max_tokens=most, role_id=tier.role, role_color=None,
        rule_name=_named(name, tier),
    )  # fmt: skip


def _named(name: str, tier: TierView) -> str:
    amounts = f" ({tier.least} to {tier.most})" if tier.most else f" ({tier.least} or more)"
    return f"{name[: LONGEST_NAME - len(amounts)]}{amounts}"
