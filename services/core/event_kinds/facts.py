"""The facts of one event, with names instead of ids."""

from collections.abc import Mapping
from typing import Any, Protocol


class EventFacts(Protocol):
    """One event with names instead of ids, for its sentence."""

    @property
    def data(self) -> Mapping[str, Any]:
        """The recorded data."""
        ...

    @property
    def who(self) -> str:
        """The actor's name."""
        ...

    @property
    def member(self) -> str:
        """The member concerned."""
        ...

    @property
    def is_about_a_member(self) -> bool:
        """Whether it concerns a member."""
        ...

    @property
    def is_by_the_member(self) -> bool:
        """Whether the member concerned did it."""
        ...

    @property
    def role(self) -> str:
        """The role concerned."""
        ...

    @property
    def rule(self) -> str:
        """The rule concerned, in quotation marks."""
        ...

    @property
    def rules(self) -> str:
        """The rules that grant the role, as `“A” and “B”`, or empty."""
        ...

    @property
    def asks(self) -> str:
        """What the rule asks for, or empty."""
        ...

    @property
    def changes(self) -> str:
        """The changes to the rule."""
        ...

    @property
    def pause(self) -> str:
        """Why the rule was paused: a sentence."""
        ...

    @property
    def reason(self) -> str:
        """Why no rule entitles the member to the role, or empty."""
        ...

    def contract(self, name: str) -> str:
        """Return a contract in the data with its chain, as `Mellow Cats on Base`."""
        ...

    def count(self, name: str) -> int:
        """Return a number in the data."""
        ...
