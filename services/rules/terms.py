"""What a decision has to know of a rule."""

from dataclasses import dataclass
from datetime import datetime

from services.rules.expression import Expression


@dataclass(frozen=True, slots=True)
class RuleTerms:
    """What a decision has to know of a rule."""

    id: int
    role_id: str
    expression: Expression
    state: str
    """`active`, `shadow` or `paused`."""
    grace_hours: int = 0
    deleted: bool = False
    created_at: datetime | None = None
    takes_over: bool = False
    """Whether an admin handed the role over to us: it is judged also on members to whom somebody else gave it."""
    delegated: bool = False
    """Whether what vaults have delegated to a member's wallets counts as well."""

    @property
    def decides(self) -> bool:
        """Whether the rule gives and takes at present."""
        return self.state == "active" and not self.deleted

    @property
    def rests(self) -> bool:
        """Whether the rule is there without deciding: what it gave stays."""
        return self.state != "active" and not self.deleted
