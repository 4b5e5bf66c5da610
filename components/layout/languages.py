"""The choice of a language, as links that work before any script."""

import reflex as rx

from locales import LANGUAGES, _, own_name, whether_spoken
from locales.browser_language import CHOICE_PATH


def languages(class_name: str) -> rx.Component:
    """Return a link for each language, with its own name; the page's language is marked."""
    return rx.el.nav(
        *[
            rx.el.a(
                own_name(language),
                href=f"{CHOICE_PATH}{language}",
                lang=language,
                rel="nofollow",
                reload_document=True,
                aria_current=whether_spoken(language),
                class_name="muted whitespace-nowrap underline-offset-2 hover:underline "
                "aria-[current=true]:font-semibold aria-[current=true]:text-primary",
            )
            for language in LANGUAGES
        ],
        aria_label=_("Translations"),
        class_name=f"flex flex-wrap gap-x-4 gap-y-2 {class_name}",
    )
