"""Classify database errors: the database is absent, cannot work right now, or neither."""

import logging
import time

import psycopg
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoneFree

from models import DatabaseUrlMissing
from services.runtime.logs import RareWarnings

DATABASE_FAULTS = (OperationalError, InterfaceError, psycopg.OperationalError, psycopg.InterfaceError)
"""The classes of errors raised when the database is absent or overloaded."""
UNANSWERED = (*DATABASE_FAULTS, NoneFree)
"""The same, and the error when no connection was free."""
NOT_DONE = (DBAPIError, NoneFree)
"""The errors of a transaction that the database did not carry out, including when no connection was free for it."""
NO_ANSWER = (SQLAlchemyError, DatabaseUrlMissing, OSError, TimeoutError)
"""The errors of a read with a time limit when the database does not answer."""
# https://www.postgresql.org/docs/current/errcodes-appendix.html
_CONNECTION, _ENDING, _FULL = "08", "57P0", "53300"
_READ_ONLY = "25006"
_TOO_MUCH = ("53200", "54")
"""Out of memory, or over the limits of one statement: a smaller statement may work."""
_PARAMETERS = "number of parameters must be"
"""The client library's own limit on a statement, which has no SQLSTATE."""
TOLD_FOR_SECONDS = 3600.0
"""How long a repeated error is logged in one line, and rarely, after its full traceback."""
_ABSENT = "absent"
_told: dict[str, float] = {}
"""When each kind of error was last logged in full, in monotonic seconds, by `_kind`."""
_repeated: dict[tuple[str, str, str], RareWarnings] = {}
"""The lines about repeated errors, by logger, consequence and kind: a full disk fails each poll of each follower."""


def is_absent(fault: BaseException) -> bool:
    """Return whether the database does not answer: a connection was refused or lost.

    A server with too many connections, or one that is starting or stopping, counts as absent too. Any other answer
    means that it is present: a deadlock, a cancelled statement, a full disk, a standby.
    """
    if not isinstance(fault, DATABASE_FAULTS):
        return False
    state = _state(fault)
    if state is None:
        # Only an answer from the server has a SQLSTATE.
        return not _is_oversized(fault)
    return state == _FULL or state.startswith((_CONNECTION, _ENDING))


def is_unanswered(fault: BaseException) -> bool:
    """Return whether the database does not answer, or has no connection free."""
    return is_absent(fault) or isinstance(fault, NoneFree)


def is_the_databases(fault: BaseException) -> bool:
    """Return whether the database cannot work right now, whatever the statement, so that waiting may help.

    So it is when no connection is free.
    """
    if _state(fault) == _READ_ONLY:
        return True
    return isinstance(fault, UNANSWERED) and not _is_oversized(fault)


def first_line(fault: BaseException) -> str:
    """Return the database client's message, without the statement and its values."""
    return str(_original(fault)).partition("\n")[0]


def log_fault(log: logging.Logger, fault: BaseException, then: str) -> None:
    """Log an error and its consequence `then`.

    If the database is absent, that is one line, otherwise the whole error once an hour. When the same comes again, it
    is logged in one line in ten minutes (`RareWarnings`), with how often it came.
    """
    moment, kind = time.monotonic(), _ABSENT if is_unanswered(fault) else _kind(fault)
    if kind != _ABSENT and moment - _told.get(kind, -TOLD_FOR_SECONDS) >= TOLD_FOR_SECONDS:
        for one in [one for one, since in _told.items() if moment - since >= TOLD_FOR_SECONDS]:
            del _told[one]
            for key in [key for key in _repeated if key[2] == one]:
                del _repeated[key]
        _told[kind] = moment
        log.error("database error, %s reason=%s", then, first_line(fault), exc_info=fault)
        _rare(log, then, kind).logged()
        return
    said = "database did not answer" if kind == _ABSENT else "same database error again"
    _rare(log, then, kind).add(f"{said}, %s reason=%s", then, first_line(fault))


def answered(log: logging.Logger, then: str) -> None:
    """Note that the database has answered, so that its next absence is logged at once."""
    _repeated.pop((log.name, then, _ABSENT), None)


def _rare(log: logging.Logger, then: str, kind: str) -> RareWarnings:
    return _repeated.setdefault((log.name, then, kind), RareWarnings(log))


def _original(fault: BaseException) -> BaseException:
    return fault.orig if isinstance(fault, DBAPIError) and fault.orig is not None else fault


def _state(fault: BaseException) -> str | None:
    original = _original(fault)
    return original.sqlstate if isinstance(original, psycopg.Error) else None


def _is_oversized(fault: BaseException) -> bool:
    return (_state(fault) or "").startswith(_TOO_MUCH) or _PARAMETERS in first_line(fault)


def _kind(fault: BaseException) -> str:
    """Return the SQLSTATE, or the type and the source line of an error without one."""
    if (state := _state(fault)) is not None:
        return state
    place = fault.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}" if place is not None else ""
    return f"{type(fault).__name__} {where}"
