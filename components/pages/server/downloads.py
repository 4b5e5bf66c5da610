"""What admins can take along of a server, as links to files."""

import reflex as rx

from components.ui.button import link_button
from state.dashboard.server_page import ServerPageState


def downloads() -> tuple[rx.Component, ...]:
    """The members as a table, and everything as a document."""
    return _download("Members as CSV", "members.csv"), _download("Everything as JSON", "export")


def _download(label: str, call: str) -> rx.Component:
    """A file of this server's, from the call with that name."""
    return link_button(
        label,
        f"/api/servers/{ServerPageState.server_id}/{call}",
        icon="download",
        leaves_app=True,
        download=True,
    )
