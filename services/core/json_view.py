"""The decorator of views that the REST API returns: they are declared once, in services, and become camelCase JSON."""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import cleandoc
from typing import Annotated, TypeVar, dataclass_transform, overload

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

_T = TypeVar("_T")

Internal = Annotated[_T, Field(exclude=True)]
"""A field of a view that stays out of its JSON."""


@overload
def json_view(cls: type[_T], /) -> type[_T]: ...


@overload
def json_view(*, kw_only: bool) -> Callable[[type[_T]], type[_T]]: ...


@dataclass_transform(frozen_default=True)
def json_view(cls: type[_T] | None = None, /, *, kw_only: bool = False) -> type[_T] | Callable[[type[_T]], type[_T]]:
    """Make a frozen dataclass that FastAPI writes as JSON: camelCase names, its docstring as the description.

    The class stays a plain dataclass: creating an instance checks and converts nothing, so its fields
    hold exactly the values that were passed.
    """

    def made(cls: type[_T]) -> type[_T]:
        view = dataclass(frozen=True, slots=True, kw_only=kw_only)(cls)
        config = ConfigDict(
            alias_generator=to_camel,
            json_schema_extra={"description": cleandoc(view.__doc__ or "")},
            # An answer has every field, also those with a default.
            json_schema_serialization_defaults_required=True,
        )
        view.__pydantic_config__ = config  # pyright: ignore[reportAttributeAccessIssue]
        return view

    return made if cls is None else made(cls)
