"""The footer of every page: its links, the brand line, the version, and the choice of a language."""

import reflex as rx

from components.layout.languages import languages
from components.layout.navigation import DOCS, SUPPORT_LINKS, plain_link
from components.ui.brand import wordmark
from locales import _
from settings import settings, version

LINKS = (
    (_("Features"), "/features"),
    (_("Help Center"), "/help-center"),
    *SUPPORT_LINKS,
    (_("Contact"), "/contact"),
    (_("Status"), "/status"),
    (_("Privacy Policy"), "/privacy-policy"),
    (_("Terms of Service"), "/terms-of-service"),
)


def footer(docs: tuple[str, str] = DOCS) -> rx.Component:
    """Return the footer: links and the brand line."""
    return rx.el.footer(
        rx.el.div(
            rx.el.div(
                wordmark("/"),
                rx.el.p(
                    _("© {year} {product}, a brand of {brand}.").format(
                        year=settings().brand_year, product=settings().product_name, brand=settings().brand
                    ),
                    class_name="muted mt-2 text-sm",
                ),
                rx.el.p(_("Version {version}").format(version=version()), class_name="muted text-sm"),
                languages("mt-3 text-sm"),
            ),
            rx.el.nav(
                *[plain_link(label, href) for label, href in (docs, *LINKS)],
                class_name="-mx-3 grid grid-cols-2 sm:grid-cols-3 lg:flex lg:flex-wrap lg:justify-end",
                aria_label=_("Footer"),
            ),
            class_name=(
                # On a phone there is room for a toast below the links.
                "mx-auto flex max-w-6xl flex-col items-start justify-between gap-6 px-4 py-8 max-sm:pb-32 sm:px-6 "
                "lg:flex-row lg:items-center"
            ),
        ),
        class_name="around-content mt-auto border-t hairline",
    )
