"""The truth of a history: which wallet is whose and on which list, whose wallets count, and since which step."""

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
    """What is true of each member and each wallet, whatever the product has read of it."""

    people: Sequence[str]
    lists: Sequence[str]
    wallets: Sequence[str]
    listed: dict[tuple[str, str], Fact] = field(init=False)
    """Whether a wallet is on a list, by list and wallet."""
    proved: dict[tuple[str, str], Fact] = field(init=False)
    """Whether a wallet is a member's, by member and wallet."""
    hidden: dict[str, Fact] = field(init=False)
    """Whether a member's wallets do not count in the server, by their own choice."""

    def __post_init__(self) -> None:
        self.listed = {(one, wallet): Fact() for one in self.lists for wallet in self.wallets}
        self.proved = {(who, wallet): Fact() for who in self.people for wallet in self.wallets}
        self.hidden = {who: Fact() for who in self.people}

    def wallets_of(self, who: str) -> list[str]:
        """Return the wallets that are the member's."""
        return [wallet for wallet in self.wallets if self.proved[who, wallet].value]

    def gives(self, wallet: str, who: str | None, step: int) -> None:
        """Let the wallet be this member's from now on, or nobody's."""
        for other in self.people:
            fact = self.proved[other, wallet]
            if fact.value is not (other == who):
                fact.set(other == who, step)

    def is_without_wallet(self, who: str) -> bool:
        """Return whether no wallet of the member counts in the server."""
        return self.hidden[who].value or not self.wallets_of(who)

    def says(self, rule: Expression, who: str, decision: Decision | None = None) -> Answer:
        """Return the true answer; with a `decision`, the answer that it must have respected.

        What changed too late for the decision counts as unknown. Without a wallet the answer is always no.
        """
        hidden, mine = self.hidden[who], [self.proved[who, wallet] for wallet in self.wallets]
        if not hidden.is_known_to(decision):
            return Answer.UNKNOWN
        if not hidden.value and not any(one.value and one.is_known_to(decision) for one in mine):
            return Answer.NO if all(one.is_known_to(decision) for one in mine) else Answer.UNKNOWN
        if hidden.value:
            return Answer.NO

        def leaf(one: Requirement) -> Answer:
            assert isinstance(one.details, AddressList)
            found = {self._counts(one.details.list, who, wallet, decision) for wallet in self.wallets}
            return next(answer for answer in (Answer.YES, Answer.UNKNOWN, Answer.NO) if answer in found)

        return evaluate(rule, leaf)

    def _counts(self, digest: str, who: str, wallet: str, decision: Decision | None) -> Answer:
        """Return whether the wallet is the member's and on the list."""
        facts = self.proved[who, wallet], self.listed[digest, wallet]
        if any(not one.value for one in facts if one.is_known_to(decision)):
            return Answer.NO
        return Answer.YES if all(one.is_known_to(decision) for one in facts) else Answer.UNKNOWN
