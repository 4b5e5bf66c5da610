"""The actor: the signed-in person for whom a use case runs, or a program with a token that the person made."""

from contextvars import ContextVar
from dataclasses import dataclass

_token_name: ContextVar[str | None] = ContextVar("token_name", default=None)


@dataclass(frozen=True, slots=True)
class TokenUse:
    """The API token of a call: it reaches one server, and only what its scopes open."""

    id: int
    name: str
    server_id: int
    scopes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Actor:
    """A person whose session or API token has just been checked.

    `session_hash` identifies that session among the person's own. It is empty when they act from inside Discord or
    through an API token; `token` is that token.
    """

    user_id: int
    discord_id: str
    username: str
    session_hash: bytes = b""
    token: TokenUse | None = None

    @property
    def limit_key(self) -> str:
        """The key under which rate limits are counted: one for each token, one for a person without a token."""
        return f"user:{self.user_id}" if self.token is None else f"token:{self.token.id}"

    @property
    def reads_members(self) -> bool:
        """Whether they may read who a member is: anybody but a token without the scope for members."""
        return self.token is None or "members" in self.token.scopes

    def reaches(self, server_id: int | None) -> bool:
        """Return False for a token of another server; rights in the server are checked separately."""
        return self.token is None or self.token.server_id == server_id


def begin(actor: Actor) -> None:
    """Record for the audit log, until the request ends, whether a person or a token acts."""
    _token_name.set(actor.token.name if actor.token else None)


def token_name() -> str | None:
    """Return the name of the token that makes the current request, or None."""
    return _token_name.get()
