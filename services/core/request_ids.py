"""The name of the request under way: it follows a change through queue and ledger into every process's log."""

import re
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_current: ContextVar[str | None] = ContextVar("request_id", default=None)
_USABLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{7,63}")


def current() -> str | None:
    """The request's name; None for what Holdfast does by itself."""
    return _current.get()


def begin(name: str | None = None) -> str:
    """From here on in this task a request of this name is under way (a new name if none is given); returns it."""
    name = name or secrets.token_hex(6)
    _current.set(name)
    return name


@contextmanager
def under(name: str | None) -> Generator[None]:
    """While the block lasts, what is done belongs to this request."""
    token = _current.set(name)
    try:
        yield
    finally:
        _current.reset(token)


def usable(said: str | None) -> str | None:
    """The name that a proxy before us gave the request, if it is one that may stand in a log."""
    return said if said and _USABLE.fullmatch(said) else None
