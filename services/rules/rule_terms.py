"""A rule as decisions see it: its role, its expression, its state, and the few other fields that they use."""

from dataclasses import dataclass, field
from datetime import datetime

from services.rules.expression import Expression, Requirement, with_sense

REMOVAL_MODES = ("now", "grace")
"""When a rule takes its role from those who no longer meet it: at once, or after a grace time."""


@dataclass(frozen=True, slots=True)
class RuleTerms:
    """The fields of a rule that decisions use."""

    id: int
    role_id: str
    expression: Expression
    state: str
    """`active`, `shadow` or `paused`."""
    grace_hours: int = 0
    deleted: bool = False
    created_at: datetime | None = None
    takes_over: bool = False
    """Whether an admin handed the role over to us: holders to whom others gave it are judged too."""
    delegated: bool = False
    """Whether delegated vaults of a member's wallets count as well."""
    leaves: tuple[tuple[Requirement, bool], ...] = field(init=False, repr=False, compare=False)
    """Its conditions in the order of `with_sense`, listed once because a sweep needs them for every member."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "leaves", with_sense(self.expression))

    @property
    def decides(self) -> bool:
        """Whether the rule gives and takes roles at present."""
        return self.state == "active" and not self.deleted

    @property
    def rests(self) -> bool:
        """Whether the rule exists without deciding: given roles stay."""
        return self.state != "active" and not self.deleted
