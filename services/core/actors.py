"""Who acts: the signed-in person that every use case is done for."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Actor:
    """A person whose session was found alive a moment ago.

    `session_hash` names that session among the person's own; it is empty when they act from inside Discord.
    """

    user_id: int
    discord_id: str
    username: str
    session_hash: bytes = b""
