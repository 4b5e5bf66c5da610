"""The message that people see when a handler fails."""

import logging
import time
from collections import deque
from contextlib import suppress

from reflex.event import EventSpec
from reflex_base.event.context import EventContext

from locales import _, speak
from locales.browser_language import asked_for
from services.core.errors import HoldfastError, NotSignedIn, explained
from services.runtime.database_faults import UNANSWERED, first_line, is_unanswered
from state.core.session import DATABASE_AWAY, SessionState
from state.core.toasts import ToastState

_log = logging.getLogger(__name__)

UNREADABLE = (HoldfastError, *UNANSWERED)
"""Errors after which a screen says what it could not read."""
LONGEST_REPORT = 1_000
"""Characters of a browser's report that are logged."""
REPORTS_A_MINUTE = 30
"""Browser reports logged in a minute, over all browsers."""
_reported: deque[float] = deque(maxlen=REPORTS_A_MINUTE)


def show_fault(exception: Exception) -> EventSpec | None:
    """Handle a backend exception for Reflex: show our own errors; log others and show a general message."""
    _speak_as_the_handler()
    if isinstance(explained(exception), NotSignedIn):
        return SessionState.left()
    return ToastState.show(_("Error"), sentence_of(exception), True)


def _speak_as_the_handler() -> None:
    # Reflex calls this in a task that does not inherit the handler's context.
    with suppress(LookupError):
        headers = EventContext.get().router_data.get("headers", {})
        speak(asked_for(headers.get("cookie"), headers.get("accept-language")))


def sentence_of(exception: Exception) -> str:
    """Return the sentence that a person reads about an exception; log exceptions that are not ours."""
    exception = explained(exception)
    if isinstance(exception, HoldfastError):
        return exception.message
    if is_unanswered(exception):
        _log.warning("database did not answer a handler reason=%s", first_line(exception))
        return _(DATABASE_AWAY)
    _log.error("handler failed", exc_info=exception)
    return _("Something went wrong on our side. Please try again.")


def note_report(exception: Exception) -> None:
    """Handle a frontend exception for Reflex: log the browser's report in one line.

    Anybody can send any report, so a report cannot add further lines, and the number of reports is limited.
    """
    now = time.monotonic()
    if len(_reported) == REPORTS_A_MINUTE and now - _reported[0] < 60:
        return
    _reported.append(now)
    words = "".join(letter if letter.isprintable() else " " for letter in str(exception)[: 2 * LONGEST_REPORT])
    _log.warning("browser report text=%s", " ".join(words.split())[:LONGEST_REPORT])
