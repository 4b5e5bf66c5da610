"""The actor: the signed-in person for whom a use case runs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Actor:
    """A person whose session has just been checked.

    `session_hash` identifies that session among the person's own. It is empty when they act from inside Discord.
    """

    user_id: int
    discord_id: str
    username: str
    session_hash: bytes = b""
