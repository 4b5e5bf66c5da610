"""Pictures of people and servers, with a letter where Discord has none."""

import reflex as rx

from components.ui.effects.texts import initial


def server_icon(name: rx.Var[str] | str, url: rx.Var[str] | str, size: str = "size-12") -> rx.Component:
    """Return a server's icon over its first letter, which shows when there is no picture."""
    return _picture(name, url, f"{size} rounded-2xl text-lg")


def avatar(name: rx.Var[str] | str, url: rx.Var[str] | str, size: str = "size-12") -> rx.Component:
    """Return a person's avatar over their first letter."""
    return _picture(name, url, f"{size} rounded-full text-lg")


def _picture(name: rx.Var[str] | str, url: rx.Var[str] | str, class_name: str) -> rx.Component:
    return rx.el.span(
        initial(name),
        # Empty alt text: the name is beside it. Without a width of its own a picture that fails to load leaves no mark.
        rx.cond(
            url, rx.el.img(src=url, alt="", loading="lazy", class_name="absolute inset-0 m-auto max-h-full max-w-full")
        ),
        class_name=(
            "display relative grid shrink-0 place-items-center overflow-hidden bg-primary "
            f"font-semibold text-primary-content {class_name}"
        ),
        aria_hidden="true",
    )
