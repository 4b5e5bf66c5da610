"""The shapes of our JSON: camelCase names, texts that the database can store, ids that fit their column."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, date, datetime, time
from functools import partial
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Path, Query
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic.alias_generators import to_camel
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from models.db.row_ids import row_id
from services.core.untrusted_json import can_be_kept, levels


class ApiAnswer(BaseModel):
    """An answer that is not simply a view of the services. It has every field, also those with a default."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        from_attributes=True,
        json_schema_serialization_defaults_required=True,
    )


class Done(ApiAnswer):
    """The call has succeeded."""

    success: bool = True


class AcceptedAnswer(ApiAnswer):
    """The work is queued and will be done soon."""

    message: str


class Payload(BaseModel):
    """The body of a call. Unknown fields are ignored; a text that the database cannot store is refused."""

    model_config = ConfigDict(alias_generator=to_camel, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _texts_are_texts(cls, data: Any) -> Any:
        _check_texts(data)
        return data


DEEPEST = 32
"""Levels of a payload; the deepest rule has about 20. Code that reads one may call itself for each level."""


def _check_texts(value: object) -> None:
    """Raise ValueError for a text that cannot be stored (a NUL, half a surrogate pair), or for too many levels."""
    for depth, level in enumerate(levels(value)):
        if depth == DEEPEST:
            raise ValueError("it is nested too deeply")
        for item in level:
            if isinstance(item, str):
                _kept(item)


def _kept(text: str) -> str:
    if not can_be_kept(text):
        raise ValueError("a text has characters that cannot be stored")
    return text


def _internal_id(value: object) -> int:
    """Return an internal id; an impossible one becomes 0, which no row has, so the answer is the usual "not found"."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("an id is a whole number")
    return row_id(str(value)) or 0


def _or_empty(value: object) -> object:
    return "" if value is None else value


def _at(moment: time, given: object) -> object:
    """Return this moment of a day that is named by its date alone; anything else stays as it is."""
    if not isinstance(given, str) or len(given) != len("2027-01-31"):
        return given
    try:
        return datetime.combine(date.fromisoformat(given), moment, UTC)
    except ValueError:
        return given


def _in_utc(given: datetime) -> datetime:
    return given if given.tzinfo is not None else given.replace(tzinfo=UTC)


def usual_if_empty(usual: object) -> BeforeValidator:
    """Return what reads an empty field of the query, as in `?page=`, as its default `usual`: it counts as left out."""
    return BeforeValidator(lambda given: usual if given == "" else given)


Text = Annotated[str, AfterValidator(_kept)]
"""A text from the URL."""
Loose = Annotated[str, BeforeValidator(_or_empty), WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "null"}]})]
"""A text in a payload; null counts as empty, because the service has the message for a missing field."""
InternalId = Annotated[int, BeforeValidator(_internal_id)]
PathId = Annotated[int, BeforeValidator(_internal_id), Path()]
QueryId = Annotated[int, BeforeValidator(_internal_id), Query()]
# The bounds stand before the validator, or the OpenAPI document would have them in pydantic's words.
PageNumber = Annotated[int, Field(ge=1, le=1_000_000), usual_if_empty(1), Query()]
LEFT_OUT_IF_EMPTY = usual_if_empty(None)
_TIME_OR_DAY = WithJsonSchema(
    {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "string", "format": "date"}]}
)
TimeFrom = Annotated[datetime, BeforeValidator(partial(_at, time.min)), AfterValidator(_in_utc), _TIME_OR_DAY]
TimeUntil = Annotated[datetime, BeforeValidator(partial(_at, time.max)), AfterValidator(_in_utc), _TIME_OR_DAY]
"""A time, in UTC unless it has a zone, or a date alone, for the start (`TimeFrom`) or the end (`TimeUntil`) of that
day."""

CSV: dict[int | str, dict[str, Any]] = {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}}
"""The description of an answer that is a CSV file."""


def disposition(name: str) -> str:
    """Return the header `Content-Disposition` of a file to download; its name may have any characters (RFC 6266)."""
    encoded = quote(name, safe="")
    return f'attachment; filename="{name}"' if encoded == name else f"attachment; filename*=utf-8''{encoded}"


class _Attachment(StreamingResponse):
    def __init__(self, content: AsyncGenerator[str], kind: str, headers: dict[str, str]) -> None:
        super().__init__(content, media_type=kind, headers=headers)
        self._content = content

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file. What writes it is closed at once if it is not read to its end, as after HEAD."""
        async with aclosing(self._content):
            await super().__call__(scope, receive, send)


def attachment(content: AsyncGenerator[str], name: str, kind: str) -> StreamingResponse:
    """Return a file to download, streamed as it is written."""
    return _Attachment(content, kind, {"Content-Disposition": disposition(name), "Cache-Control": "no-store"})
