"""Reading fields of a request's JSON as leniently as Discord does: ids and permission sets as text or number."""

import re
from typing import Any

from sandbox.discord.errors import form_error

Form = dict[str, Any]


def given_text(form: Form, name: str, highest: int, lowest: int = 0) -> str | None:
    """A text of bounded length; None where it is absent or null. Raises 50035."""
    value = form.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise form_error(name, "Could not interpret value as string.")
    if not lowest <= len(value) <= highest:
        raise form_error(name, f"Must be between {lowest} and {highest} in length.")
    return value


def needed_text(form: Form, name: str, highest: int, lowest: int = 1) -> str:
    """A text that must be there. Raises 50035."""
    value = given_text(form, name, highest, lowest)
    if value is None:
        raise form_error(name, "This field is required")
    return value


def given_number(form: Form, name: str) -> int | None:
    """A whole number, also as text (permission sets). Raises 50035."""
    value = form.get(name)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and re.fullmatch(r"-?\d+", value):
        return int(value)
    raise form_error(name, f'Value "{value}" is not int.')


def given_switch(form: Form, name: str) -> bool | None:
    """A yes or no. Raises 50035."""
    value = form.get(name)
    if value is None or isinstance(value, bool):
        return value
    raise form_error(name, "Must be either true or false.")


def snowflake_text(value: Any, name: str) -> str:
    """An id given as text or as a number of any size. Raises 50035."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return str(value)
    if isinstance(value, str) and re.fullmatch(r"0|[1-9]\d{0,19}", value):
        return value
    raise form_error(name, f'Value "{value}" is not snowflake.')
