"""The notice of a lost connection, above every page."""

import reflex as rx
from reflex_components_core.core.banner import has_connection_errors

from locales import _


def connection_notice() -> rx.Component:
    """Return the notice of a lost socket, which disappears after the reconnect."""
    return rx.cond(
        has_connection_errors,
        rx.el.div(
            _("The connection was lost. Trying again…"),
            class_name="around-content fixed inset-x-0 top-0 z-[70] bg-warning py-1.5 text-center text-sm "
            "text-warning-content",
            role="status",
        ),
    )
