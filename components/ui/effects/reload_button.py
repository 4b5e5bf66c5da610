"""Loads the page again."""

from typing import Any

import reflex as rx


class _Reload(rx.Component):
    """A button that loads the page again in the browser, so it works without a connection to the server."""

    library = "$/public/screens/reload_button.js"
    tag = "Reload"


def reload_button(label: str, **props: Any) -> rx.Component:
    """Return a button that loads the page again, with its whole address."""
    return _Reload.create(label, **props)
