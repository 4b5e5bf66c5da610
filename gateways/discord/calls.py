"""The request method that all groups of calls share."""

from abc import ABC, abstractmethod
from collections.abc import Mapping


class DiscordCalls(ABC):
    """A group of calls to Discord; the client inherits all groups."""

    @abstractmethod
    async def _request(
        self,
        method: str,
        template: str,
        ids: tuple[str, ...],
        *,
        query: str = "",
        reason: str | None = None,
        major: str | None = None,
        body: Mapping[str, object] | None = None,
        once: bool = False,
    ) -> object: ...
