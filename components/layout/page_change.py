"""Opening a page within the document: its title is announced, its content gets the focus, the bar can be skipped."""

import reflex as rx

from locales import _

_LIBRARY = "$/public/screens/page_change.js"


class _PageChange(rx.Component):
    """Says the title of a page that was opened within the document, and gives its content the focus."""

    library = _LIBRARY
    tag = "PageChange"


class _SkipLink(rx.Component):
    """A link to the content of the same page, which keeps its address."""

    library = _LIBRARY
    tag = "SkipLink"


def page_change() -> rx.Component:
    """Return the region in which screen readers hear the title of each page that is opened."""
    return _PageChange.create(class_name="sr-only")


def skip_link() -> rx.Component:
    """Return the link over the navigation to the content, shown only while it has the focus."""
    return _SkipLink.create(
        _("Skip to content"),
        class_name="btn btn-primary sr-only focus:not-sr-only focus:absolute focus:inset-s-4 focus:top-4 focus:z-50 "
        "focus:px-4!",
    )
