"""The id of the current request, which follows a change through queue and ledger into the logs of all processes."""

import re
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_current: ContextVar[str | None] = ContextVar("request_id", default=None)
_USABLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{7,63}")


def current() -> str | None:
    """Return the current request's id, or None for work that no request caused."""
    return _current.get()


def begin(name: str | None = None) -> str:
    """Set the request id of the current task, a new one by default, and return it."""
    name = name or secrets.token_hex(6)
    _current.set(name)
    return name


@contextmanager
def under(name: str | None) -> Generator[None]:
    """Set the request id for the duration of the block."""
    token = _current.set(name)
    try:
        yield
    finally:
        _current.reset(token)


def usable(said: str | None) -> str | None:
    """Return the request id that a proxy sent, if it is safe to log."""
    return said if said and _USABLE.fullmatch(said) else None
