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
    def is_about_a_member(self) -> bool:
        """Whether it concerns a member."""
        ...

    @property
    def is_by_the_member(self) -> bool:
        """Whether the member concerned did it."""
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

    def told(self, text: str, **more: object) -> str:
        """Return a text with its places filled in: with the facts of these names, or with `more`.

        Further facts are {who}, {member}, {role}, {rule} and {changes}.
        """
        ...
