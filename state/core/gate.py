"""The gate before every handler: what a browser may send at all, and whose session it is when it matters."""

import functools
import inspect
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, Concatenate, ParamSpec, cast, get_type_hints

import reflex as rx
from pydantic import ConfigDict, TypeAdapter, ValidationError
from reflex.middleware.middleware import Middleware
from reflex.state import BaseState, StateUpdate
from reflex_base.constants.state import FIELD_MARKER
from reflex_base.event import Event
from reflex_base.registry import RegistrationContext
from reflex_base.utils.form import FORM_DATA_ENTRIES_KEY

from models import reading
from services.accounts import sessions
from services.core import request_ids
from services.core.actors import Actor
from services.core.errors import NotSignedIn
from services.core.texts import can_be_kept
from services.runtime import rejections

PAYLOAD_BYTES = 64 * 1024
"""No screen sends more in one event; a collection's list of token ids is the longest."""
STORED_LENGTH = 512
"""No value of ours in a browser's storage is longer."""
LARGEST_NUMBER = 2**53
"""The largest whole number that a browser tells exactly."""
_STRICT = ConfigDict(strict=True, allow_inf_nan=False)
_CONNECT = "hydrate_and_load"
_UNUSED = (".setvar", ".hydrate")
_STORAGE = "update_vars_internal"
_FIRST = "hashes"
"""What a browser sends with a page that it has just loaded, and leaves out when only its connection is a new one."""

P = ParamSpec("P")
Handler = Callable[..., Any]


class Refused(Exception):
    """The event is not one that our own screens send; nothing of it is run."""


class Gate(Middleware):
    """Refuses malformed events before any handler runs, and lets `arrive` look at each (re)connecting browser first.

    `arrive` is told whether only the connection is a new one, to a page that was open before. `recognise` looks before
    every other event, for who knows the name of somebody's tab may come to it without such a greeting.

    A handler's type hints are only hints to Reflex: any client may send any JSON (and any storage value at any time).
    """

    def __init__(
        self,
        arrive: Callable[[BaseState, bool], Awaitable[None]],
        recognise: Callable[[BaseState], Awaitable[None]],
    ) -> None:
        self._arrive, self._recognise = arrive, recognise

    async def preprocess(self, app: rx.App, state: BaseState, event: Event) -> StateUpdate | None:
        """Let the event pass with None, or answer it with an empty update."""
        try:
            check(event.name, event.payload)
        except Refused as refused:
            # Neither payload nor headers: both may carry what must not be logged.
            rejections.count(f"event {event.name[:120]}: {refused}")
            return StateUpdate()
        if event.name.endswith(f".{_CONNECT}"):
            await self._arrive(state, not event.payload.get(_FIRST))
        else:
            await self._recognise(state)
        return None


def exists(name: str) -> bool:
    """Whether a screen may name this handler: of Reflex's own, none of ours uses `setvar`, nor the old greeting."""
    return name in RegistrationContext.get().event_handlers and not name.endswith(_UNUSED)


def check(name: str, payload: Mapping[str, Any]) -> None:
    """Raise Refused unless the payload is exactly what the named handler takes."""
    try:
        size = len(json.dumps(payload))
    except (TypeError, ValueError) as fault:
        raise Refused("not JSON") from fault
    if size > PAYLOAD_BYTES:
        raise Refused("too large")
    _check_values(payload)
    if not exists(name):
        raise Refused("no such handler")
    registered = RegistrationContext.get().event_handlers[name]
    contract = _contract(registered.handler.fn)
    if name.endswith((f".{_CONNECT}", f".{_STORAGE}")):
        if payload.keys() - contract.keys():
            raise Refused("unknown arguments")
        if payload.get("vars") is not None:
            _check_storage(payload["vars"])
        return
    if extra := payload.keys() - contract.keys():
        raise Refused(f"{len(extra)} unknown arguments")
    for argument, (adapter, needed) in contract.items():
        if argument not in payload:
            if needed:
                raise Refused(f"{argument} is missing")
            continue
        try:
            adapter.validate_python(_unwrapped(payload[argument]))
        except ValidationError as fault:
            raise Refused(f"{argument} has a wrong type") from fault


def _check_values(payload: object) -> None:
    """Raise Refused where a text, however deep, cannot be stored or sent, or a number is none that a browser has."""
    waiting = [payload]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            if not can_be_kept(value):
                raise Refused("a text has characters that cannot be stored")
        elif isinstance(value, int):
            if abs(value) > LARGEST_NUMBER:
                raise Refused("a number is too large")
        elif isinstance(value, list):
            waiting.extend(cast("list[object]", value))
        elif isinstance(value, dict):
            fields = cast("dict[object, object]", value)
            waiting.extend([*fields, *fields.values()])


def _unwrapped(value: Any) -> Any:
    """The value as the handler will get it: a submitted form travels as a list of its names and values."""
    if not isinstance(value, dict) or FORM_DATA_ENTRIES_KEY not in value:
        return value
    entries = cast(dict[str, Any], value)[FORM_DATA_ENTRIES_KEY]
    if len(cast(dict[str, Any], value)) > 1 or not isinstance(entries, list):
        raise Refused("a form has a wrong shape")
    for entry in cast(list[Any], entries):
        if not (isinstance(entry, list) and len(cast(list[Any], entry)) == 2 and isinstance(entry[0], str)):
            raise Refused("a form has a wrong shape")
    return dict(cast(list[tuple[str, Any]], entries))


def _check_storage(values: object) -> None:
    if not isinstance(values, dict):
        raise Refused("storage is no object")
    for key, value in cast(dict[str, object], values).items():
        path, _, variable = key.rpartition(".")
        owner = RegistrationContext.get().base_states.get(path)
        if owner is None or not owner._is_client_storage(variable.removesuffix(FIELD_MARKER)):
            raise Refused("not a stored variable")
        if not isinstance(value, str) or len(value) > STORED_LENGTH:
            raise Refused("a stored value is no short text")


@functools.cache
def _contract(handler: Handler) -> dict[str, tuple[TypeAdapter[Any], bool]]:
    """Per argument of a handler how to check it, and whether it has to be there."""
    function = handler.func if isinstance(handler, functools.partial) else handler
    hints = get_type_hints(function)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    return {
        one.name: (TypeAdapter(hints.get(one.name, Any), config=_STRICT), one.default is inspect.Parameter.empty)
        for one in parameters
    }


def public(handler: Handler) -> Any:
    """Marks a handler that anybody may call, signed in or not."""
    return handler


def background(handler: Any) -> Any:
    """Marks a handler that runs beside others and takes the state's lock only where it says `async with self`."""
    return rx.event(background=True)(handler)


def handshake_session_id(state: BaseState) -> str | None:
    """The session id in the HttpOnly cookie that came with the socket's handshake; a script cannot have set it."""
    return sessions.session_id_from_cookie_header(state.router.headers.cookie)


async def actor_of(state: BaseState) -> Actor | None:
    """Who is signed in on this socket, looked up afresh."""
    session_id = handshake_session_id(state)
    if session_id is None:
        return None
    async with reading() as db:
        return await sessions.actor_of(db, session_id)


async def _required_actor(state: BaseState) -> Actor:
    actor = await actor_of(state)
    if actor is None:
        raise NotSignedIn
    return actor


def signed_in(handler: Callable[Concatenate[Any, Actor, P], Any]) -> Any:
    """Resolves the actor at every call and passes it as the handler's first argument; without one nothing runs.

    NotSignedIn then reaches `state.core.errors`, which shows the signed-out view.
    """

    @functools.wraps(handler)
    async def streamed(self: BaseState, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[Any]:
        request_ids.begin()
        actor = await _required_actor(self)
        async for outcome in handler(self, actor, *args, **kwargs):
            yield outcome

    @functools.wraps(handler)
    async def awaited(self: BaseState, *args: P.args, **kwargs: P.kwargs) -> Any:
        request_ids.begin()
        return await handler(self, await _required_actor(self), *args, **kwargs)

    guarded: Any = streamed if inspect.isasyncgenfunction(handler) else awaited
    # To Reflex (and to the gate) the handler takes what the browser sends: everything but the actor.
    signature = inspect.signature(handler)
    names = list(signature.parameters)
    hints = get_type_hints(handler)
    guarded.__signature__ = signature.replace(
        parameters=[one for name, one in signature.parameters.items() if name != names[1]]
    )
    guarded.__annotations__ = {name: hint for name, hint in hints.items() if name not in (names[1], "return")}
    del guarded.__wrapped__
    return guarded
