"""What a person sees when a handler could not do what it should."""

import logging
import traceback

from reflex.event import EventSpec

from services.errors import HoldfastError, NotSignedIn
from state.session import SessionState
from state.toasts import ToastState

_log = logging.getLogger(__name__)


def show_fault(exception: Exception) -> EventSpec | None:
    """Reflex's backend exception handler: our own errors are told, everything else is logged and kept vague."""
    if isinstance(exception, NotSignedIn):
        return SessionState.left()
    if isinstance(exception, HoldfastError):
        return ToastState.show("Error", exception.message, True)
    _log.error("A handler failed:\n%s", "".join(traceback.format_exception(exception)))
    return ToastState.show("Error", "Something went wrong on our side. Please try again.", True)
