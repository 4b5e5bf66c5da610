"""The decorator of views that the REST API returns: they are declared once, in services, and become camelCase JSON."""

from inspect import cleandoc
from typing import Annotated, TypeVar

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

_T = TypeVar("_T")

Internal = Annotated[_T, Field(exclude=True)]
"""A field of a view that stays out of its JSON."""


def json_view(cls: type[_T]) -> type[_T]:
    """Let FastAPI write a dataclass as JSON: camelCase names, its docstring as the description.

    The class stays a plain dataclass: creating an instance checks and converts nothing, so its fields
    hold exactly the values that were passed.
    """
    config = ConfigDict(
        alias_generator=to_camel,
        json_schema_extra={"description": cleandoc(cls.__doc__ or "")},
        # An answer has every field, also those with a default.
        json_schema_serialization_defaults_required=True,
    )
    cls.__pydantic_config__ = config  # pyright: ignore[reportAttributeAccessIssue]
    return cls
