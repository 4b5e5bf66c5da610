"""Links that download a server's data as files."""

import reflex as rx

from components.ui.button import link_button
from state.dashboard.server_page import ServerPageState


def downloads() -> tuple[rx.Component, ...]:
    """Return the links: members as CSV, everything as JSON."""
    return _download("Members as CSV", "members.csv"), _download("Everything as JSON", "export")


def _download(label: str, call: str) -> rx.Component:
    """Return a link to a file of this server, from the call of that name."""
    return link_button(
        label,
        f"/api/servers/{ServerPageState.server_id}/{call}",
        icon="download",
        leaves_app=True,
        download=True,
    )
