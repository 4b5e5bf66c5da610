"""The truth of a history: who is on which list, whose wallet counts, and since which step."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from services.core.answer import Answer
from services.rules.expression import Expression, Requirement, evaluate
from services.rules.types.address_list import AddressList


class Decision(NamedTuple):
    """The steps in which a removal was decided: when its reading began, and when it was written to the ledger."""

    read: int = 0
    written: int = 0


@dataclass
class Fact:
    """A fact, whether it is true, the step of its last change, and whether the product was informed of that change."""

    value: bool = False
    since: int = 0
    reported: bool = True

    def set(self, value: bool, step: int, *, reported: bool = True) -> None:
        """Set the value, whether or not it is new."""
        self.value, self.since, self.reported = value, step, reported

    def is_known_to(self, decision: Decision | None) -> bool:
        """Return whether a decision must respect the fact: it was read, or reported before the decision was written."""
        if decision is None or self.since <= decision.read:
            return True
        return self.reported and self.since < decision.written


@dataclass
class Truth:
    """What is true of each member, whatever the product has read of it."""

    people: Sequence[str]
    lists: Sequence[str]
    listed: dict[tuple[str, str], Fact] = field(init=False)
    """Whether a member's wallet is on a list, by list and member."""
    bare: dict[str, Fact] = field(init=False)
    """Whether a member has no proved wallet."""
    hidden: dict[str, Fact] = field(init=False)
    """Whether a member's wallet does not count in the server, by their own choice."""

    def __post_init__(self) -> None:
        self.listed = {(one, who): Fact() for one in self.lists for who in self.people}
        self.bare = {who: Fact() for who in self.people}
        self.hidden = {who: Fact() for who in self.people}

    def is_without_wallet(self, who: str) -> bool:
        """Return whether no wallet of the member counts in the server."""
        return self.bare[who].value or self.hidden[who].value

    def says(self, rule: Expression, who: str, decision: Decision | None = None) -> Answer:
        """Return the true answer; with a `decision`, the answer that it must have respected.

        What changed too late for the decision counts as unknown. Without a wallet the answer is always no.
        """
        for fact in (self.bare[who], self.hidden[who]):
            if not fact.is_known_to(decision):
                return Answer.UNKNOWN
            if fact.value:
                return Answer.NO

        def leaf(one: Requirement) -> Answer:
            assert isinstance(one.details, AddressList)
            fact = self.listed[one.details.list, who]
            if not fact.is_known_to(decision):
                return Answer.UNKNOWN
            return Answer.YES if fact.value else Answer.NO

        return evaluate(rule, leaf)
