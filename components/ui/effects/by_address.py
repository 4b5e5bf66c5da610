"""Chooses content by a parameter of the address, in the browser."""

import reflex as rx
from reflex.vars import VarData
from reflex_base.utils.imports import ImportVar

_ADDRESS = VarData(
    imports={"react-router": [ImportVar(tag="useSearchParams")]}, hooks={"const [parameters] = useSearchParams()": None}
)


def in_address(parameter: str) -> rx.Var[bool]:
    """Return whether the address gives the parameter a value.

    The state knows it later, and until then it is that of the visit before.
    """
    return rx.Var(f"Boolean(parameters.get({parameter!r}))", _var_type=bool, _var_data=_ADDRESS)
