"""What a browser does by itself when it loads a document, for pages that take each other's place in one."""

import reflex as rx


class _Arrival(rx.Component):
    """Says the title of a page that was opened within the document, and gives its content the focus."""

    library = "$/public/screens/arrival.js"
    tag = "Arrival"


def arrival() -> rx.Component:
    """Return the region in which screen readers hear the title of each page that is opened."""
    return _Arrival.create(class_name="sr-only")
