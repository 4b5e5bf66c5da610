"""What a person sees when a handler could not do what it should."""

import logging
import time
import traceback
from collections import deque

from reflex.event import EventSpec

from services.core.errors import HoldfastError, NotSignedIn, explained
from services.runtime.database_faults import first_line, is_absent
from state.core.session import SessionState
from state.core.toasts import ToastState

_log = logging.getLogger(__name__)

DATABASE_AWAY = "The database does not answer right now. Please try again in a few seconds."
LONGEST_REPORT = 1_000
"""Characters that are kept of what a browser reports."""
REPORTS_A_MINUTE = 30
"""As many reports of browsers are logged, whoever they come from."""
_reported: deque[float] = deque(maxlen=REPORTS_A_MINUTE)


def show_fault(exception: Exception) -> EventSpec | None:
    """Reflex's backend exception handler: our own errors are told, everything else is logged and kept vague."""
    exception = explained(exception)
    if isinstance(exception, NotSignedIn):
        return SessionState.left()
    if isinstance(exception, HoldfastError):
        return ToastState.show("Error", exception.message, True)
    if is_absent(exception):
        _log.warning("the database did not answer a handler reason=%s", first_line(exception))
        return ToastState.show("Error", DATABASE_AWAY, True)
    _log.error("A handler failed:\n%s", "".join(traceback.format_exception(exception)))
    return ToastState.show("Error", "Something went wrong on our side. Please try again.", True)


def note_report(exception: Exception) -> None:
    """Reflex's frontend exception handler: what a browser says went wrong in it, as one line of the log.

    Anybody can send a report of any size and wording, so it makes no other lines, and not many.
    """
    now = time.monotonic()
    if len(_reported) == REPORTS_A_MINUTE and now - _reported[0] < 60:
        return
    _reported.append(now)
    words = "".join(letter if letter.isprintable() else " " for letter in str(exception)[: 2 * LONGEST_REPORT])
    _log.warning("A browser reports: %s", " ".join(words.split())[:LONGEST_REPORT])
