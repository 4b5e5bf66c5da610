"""Error answers: `{"message": …}`, a sentence for a person, with the right status."""

import json
import logging
import math
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import ConfigDict
from sqlalchemy.exc import InterfaceError, OperationalError, SQLAlchemyError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from app.api.requests.caller import known_caller, shown_session_id, shown_token
from app.api.requests.head_requests import is_read
from app.api.requests.shapes import ApiAnswer
from app.http.middleware import Begun, HttpMiddleware
from gateways.transport.errors import ProviderError
from locales import _, listed, sentences
from models import DatabaseUrlMissing
from services.core import request_ids
from services.core.errors import HoldfastError, NotSignedIn, QuestionTimedOut, Retryable, explained, unavailable
from services.runtime.database_faults import NoneFree, first_line, is_unanswered

router = APIRouter(include_in_schema=False)
_log = logging.getLogger(__name__)


class ProblemAnswer(ApiAnswer):
    """The error as a sentence for a person; some errors have further fields."""

    model_config = ConfigDict(extra="allow")

    message: str


_AWAY = (OperationalError, InterfaceError, NoneFree, DatabaseUrlMissing)
"""The errors of a database that does not answer, or has no connection free."""
_SHAPE = {"application/json": {"schema": {"$ref": f"#/components/schemas/{ProblemAnswer.__name__}"}}}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"description": description, "content": _SHAPE}
    for status, description in {
        400: "A field's value cannot be taken.",
        401: "Nobody is signed in.",
        403: "The caller may not do this.",
        404: "Not there, or not the caller's to know of.",
        405: "There is a call at this address, with another method; `Allow` names it.",
        408: "The request took too long to arrive.",
        409: "It contradicts what is already there.",
        413: "The request is too large.",
        422: "A field of the body is missing or has a wrong type, or an `Idempotency-Key` belongs to another body.",
        429: "Too often; `Retry-After` says in how many seconds again.",
        502: "A provider's answer cannot be used.",
        503: "A provider or the database does not answer; `Retry-After` says when to try again.",
    }.items()
}
"""The error answers that every call may give. They refer to the shape, which `openapi` adds to the document.

If they named the model instead, FastAPI would make a validator for each of them at each call, 1,080 of them: a third of
what the import of the API takes.
"""


def answer_for(api: FastAPI) -> None:
    """Register an answer for every error that calls can raise."""
    api.add_exception_handler(HoldfastError, _refused)
    api.add_exception_handler(ProviderError, _provider_at_fault)
    api.add_exception_handler(RequestValidationError, _not_the_shape)
    api.add_exception_handler(HTTPException, _refused_by_the_frame)
    for away in _AWAY:
        api.add_exception_handler(away, _database_away)


def response_of(error: HoldfastError) -> JSONResponse:
    """Return the answer for an error with a sentence for a person."""
    headers = {"Retry-After": str(math.ceil(error.retry_after))} if isinstance(error, Retryable) else None
    return JSONResponse({"message": error.message, **error.more}, status_code=error.status, headers=headers)


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HoldfastError)
    return response_of(error)


async def _provider_at_fault(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ProviderError)
    _log.warning("provider gave no usable answer reason=%s", error)
    return response_of(unavailable(error))


async def _not_the_shape(request: Request, error: Exception) -> Response:
    """Return an answer that names the fields that do not match the call's shape, without repeating their values.

    The status is 422 for a body, 400 for the path, the query and a header.
    """
    assert isinstance(error, RequestValidationError)
    faults = error.errors()
    if any(fault["type"] == "json_invalid" for fault in faults) and (nobody := await _nobody(request)):
        return nobody
    if any(fault["loc"] == ("body",) and fault["type"] in _NO_OBJECT for fault in faults):
        # The header matters: without it, JSON counts as any other text.
        message = _("This call takes a JSON object, with the header {header}.")
        return JSONResponse({"message": message.format(header="Content-Type: application/json")}, 422)
    if isinstance(broken := error.__cause__, json.JSONDecodeError):
        message = _("The body is not valid JSON: line {line}, character {column}.")
        return JSONResponse({"message": message.format(line=broken.lineno, column=broken.colno)}, 422)
    message = sentences(_("Some fields are missing or have a wrong type."), "; ".join(map(_words, faults)))
    of_body = not all(fault["loc"] and fault["loc"][0] in {"path", "query", "header"} for fault in faults)
    return JSONResponse({"message": message}, 422 if of_body else 400)


_NO_OBJECT = frozenset({"missing", "dict_type", "model_type", "model_attributes_type"})
"""The library's types of faults for anything other than a JSON object."""


def _words(fault: Mapping[str, Any]) -> str:
    """Return the field and what is wrong with it."""
    place = ".".join(str(part) for part in fault["loc"] if part not in {"body", "query", "path", "header"})
    said = str(fault["msg"]).removeprefix("Value error, ")
    if fault["type"] in _NO_OBJECT - {"missing"}:
        said = "Input should be an object"
    return f"{place}: {said}" if place else said


async def _nobody(request: Request) -> Response | None:
    """Return the 401 for a caller who is not signed in: FastAPI refuses a bad body before it checks the caller."""
    try:
        await known_caller(request)
    except NotSignedIn as nobody:
        return response_of(nobody)
    return None


async def _refused_by_the_frame(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code != 400:
        return JSONResponse({"message": str(error.detail)}, status_code=error.status_code, headers=error.headers)
    # FastAPI's own error for a body that is not text, or nested too deeply to be parsed.
    if nobody := await _nobody(request):
        return nobody
    return JSONResponse({"message": _("The request's body is malformed.")}, 422)


async def _database_away(request: Request, error: Exception) -> Response:
    if isinstance(late := explained(error), QuestionTimedOut):
        _log.error("statement ended path=%s", request.url.path, exc_info=error)
        return response_of(late)
    if is_unanswered(error) or isinstance(error, DatabaseUrlMissing):
        _log.warning("database did not answer path=%s reason=%s", request.url.path, first_line(error))
    else:
        _log.error("database could not answer path=%s", request.url.path, exc_info=error)
    message = _("The database does not answer right now. Please try again in a few seconds.")
    return JSONResponse({"message": message}, status_code=503, headers={"Retry-After": "5"})


class Faults(HttpMiddleware):
    """Answers 500 for unexpected errors; the log has the cause under the request id of the answer.

    A database that is away in other middleware, or while another error is answered, is answered as in a call. It runs
    inside the other middleware, so that this answer has an id and headers like any other. Starlette's own handler would
    run outside all of it.
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; an answer that has begun cannot be replaced."""
        begun = Begun(send)
        try:
            await self._app(scope, receive, begun)
        except _AWAY as fault:
            if begun.yet:
                raise
            await (await _database_away(Request(scope), fault))(scope, receive, send)
        except Exception as fault:
            if begun.yet:
                raise
            if isinstance(fault, SQLAlchemyError) and (nobody := await _forgotten(scope)) is not None:
                _log.info("caller forgotten meanwhile path=%s reason=%s", scope["path"], type(fault).__name__)
                await nobody(scope, receive, send)
                return
            _log.exception("request failed")
            message = _("Something went wrong on our side (request {id}).").format(id=request_ids.current())
            await JSONResponse({"message": message}, 500)(scope, receive, send)


async def _forgotten(scope: Scope) -> Response | None:
    """Return the 401 for a caller whose session or token has ended during the call, as when they deleted their data.

    What the call wrote then refers to rows that are gone.
    """
    headers = Headers(scope=scope)
    try:
        if shown_token(headers) is None and shown_session_id(headers) is None:
            return None
        return await _nobody(Request(scope))
    except (NotSignedIn, *_AWAY):
        return None


class _NoSuchCall:
    """Answers requests that match no call: 405 if a call exists with another method, otherwise 404.

    As an ASGI app it takes every method, also those that HTTP does not know.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer."""
        path: str = scope["path"]
        found = {method for call, methods in _calls(scope["app"]) if call.match(path) for method in methods}
        taken = sorted(found | {"HEAD"} if "GET" in found and is_read(path) else found)
        answer = JSONResponse({"message": _("There is no such call.")}, status_code=404)
        if taken:
            message = _("This call takes {methods}.").format(methods=listed(taken, "or"))
            answer = JSONResponse({"message": message}, status_code=405, headers={"Allow": ", ".join(taken)})
        await answer(scope, receive, send)


router.routes.extend(Route(path, _NoSuchCall()) for path in ("/health", "/api", "/api/{rest:path}"))


@cache
def _calls(api: FastAPI) -> tuple[tuple[re.Pattern[str], frozenset[str]], ...]:
    """Return the paths of all calls, each with its methods."""
    calls = (route for route in api.routes if isinstance(route, APIRoute))
    return tuple((call.path_regex, frozenset(call.methods or ())) for call in calls)
