"""People: their accounts, tokens, sessions and sign-ins, and messages that wait for them."""

from datetime import datetime
from typing import Any

from sqlmodel import Field

from models.db.row import Row
from models.db.types import document, maybe_moment, moment


class User(Row, table=True):
    """A person, known by their Discord account; the tokens are encrypted and absent for people met only in Discord."""

    id: int | None = Field(default=None, primary_key=True)
    discord_id: str = Field(unique=True)
    username: str
    global_name: str | None = None
    avatar: str | None = None
    email: str | None = None
    access_token: bytes | None = None
    refresh_token: bytes | None = None
    token_expires_at: datetime | None = maybe_moment()
    connected: bool = False
    """Whether Discord accepted the stored grant when it was last used."""
    language: str | None = None
    """The language that the person chose for the screens; None until they choose one."""
    created_at: datetime = moment()
    updated_at: datetime = moment()


class Session(Row, table=True):
    """A signed-in browser; only the hash of its id is stored."""

    id_hash: bytes = Field(primary_key=True)
    user_id: int = Field(foreign_key="user.id", ondelete="CASCADE", index=True)
    user_agent: str = ""
    created_at: datetime = moment()
    seen_at: datetime = moment()
    expires_at: datetime = moment(index=True)


class SignIn(Row, table=True):
    """A sign-in that has not returned from Discord yet; used once."""

    state_hash: bytes = Field(primary_key=True)
    cookie_hash: bytes
    verifier: str
    return_path: str
    purpose: str
    """`sign_in` or `connect`."""
    user_id: int | None = Field(default=None, foreign_key="user.id", ondelete="CASCADE")
    expires_at: datetime = moment(index=True)


class Farewell(Row, table=True):
    """A person who asked to be forgotten and still has roles from us; the row is deleted with the last of these roles.

    From then on, their Discord id is stored nowhere; the log uses the pseudonym. For some days a row with a digest of
    the id stays (`services/accounts/forgotten_people.py`).
    """

    discord_id: str = Field(primary_key=True)
    pseudonym: str
    asked_at: datetime = moment()
    renamed_at: datetime | None = maybe_moment()
    """When the log's earlier lines were rewritten; lines about the last roles come later."""


class Notice(Row, table=True):
    """A message that a person sees with the bot's next answer."""

    id: int | None = Field(default=None, primary_key=True)
    discord_id: str = Field(index=True)
    server_id: int | None = Field(default=None, foreign_key="server.id", ondelete="CASCADE")
    kind: str
    data: dict[str, Any] = document()
    created_at: datetime = moment()
    told_at: datetime | None = maybe_moment()
