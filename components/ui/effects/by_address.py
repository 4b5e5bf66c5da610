"""Chooses content by a parameter of the address, in the browser."""

import reflex as rx


class _ByAddress(rx.Component):
    """Shows its content if the address has the parameter, or if it has not and `given` is False."""

    library = "$/public/screens/by_address.js"
    tag = "ByAddress"

    parameter: rx.Var[str]
    given: rx.Var[bool]


def by_address(parameter: str, given: str | rx.Component, otherwise: str | rx.Component) -> rx.Component:
    """Return `given` if the address has the parameter, and `otherwise` if not.

    The state knows it later, and until then it is that of the visit before.
    """
    return rx.fragment(
        _ByAddress.create(given, parameter=parameter, given=True),
        _ByAddress.create(otherwise, parameter=parameter, given=False),
    )
