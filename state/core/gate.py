"""The gate before every handler: validates what a browser sends, and finds whose session it is."""

import functools
import inspect
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from itertools import chain
from typing import Any, Concatenate, ParamSpec, cast, get_type_hints

import reflex as rx
from pydantic import ConfigDict, TypeAdapter, ValidationError
from reflex.middleware.middleware import Middleware
from reflex.state import BaseState, StateUpdate
from reflex_base.constants.state import FIELD_MARKER
from reflex_base.event import Event
from reflex_base.registry import RegistrationContext
from reflex_base.utils.form import FORM_DATA_ENTRIES_KEY
from sqlalchemy.exc import SQLAlchemyError

from locales import speak
from locales.browser_language import asked_for
from models import reading
from services.accounts import sessions
from services.core import request_ids
from services.core.actors import Actor
from services.core.errors import NotSignedIn
from services.core.untrusted_json import can_be_kept, levels
from services.runtime import rate_limits, rejected_requests

_log = logging.getLogger(__name__)
PAYLOAD_BYTES = 64 * 1024
"""Largest payload of an event; our longest is a collection's list of token ids."""
STORED_LENGTH = 512
"""Longest value that we keep in a browser's storage."""
LARGEST_NUMBER = 2**53
"""The largest whole number that a browser represents exactly."""
_STRICT = ConfigDict(strict=True, allow_inf_nan=False)
_CONNECT = "hydrate_and_load"
_UNUSED = (".setvar", ".hydrate")
_STORAGE = "update_vars_internal"
_FIRST = "hashes"
"""The field that a browser sends after loading a page, and leaves out after a mere reconnect."""

P = ParamSpec("P")
Handler = Callable[..., Any]


class Refused(Exception):
    """Raised for an event that our screens never send; no part of it runs."""


class Gate(Middleware):
    """Refuses malformed events before any handler runs, and calls `arrive` for each (re)connecting browser.

    The second argument of `arrive` is whether the page was open before and only its connection is new. `recognise` runs
    before every other event, because a stranger who knows a tab's name can send events to it without connecting first.
    If the database does not answer one of these two, no handler runs, and the browser gets what `unread` returns.

    Reflex does not enforce a handler's type hints: a client may send any JSON, and any storage value at any time.
    """

    def __init__(
        self,
        arrive: Callable[[BaseState, bool], Awaitable[None]],
        recognise: Callable[[BaseState], Awaitable[None]],
        unread: Callable[[BaseState], Awaitable[StateUpdate]],
    ) -> None:
        self._arrive, self._recognise, self._unread = arrive, recognise, unread

    async def preprocess(self, app: rx.App, state: BaseState, event: Event) -> StateUpdate | None:
        """Return None to let the event pass, or an empty update to answer it."""
        headers = state.router.headers
        speak(asked_for(headers.cookie, headers.accept_language))
        try:
            check(event.name, event.payload)
        except Refused as refused:
            # Neither payload nor headers: both may contain secrets.
            rejected_requests.count(f"event {event.name[:120]}: {refused}")
            return StateUpdate()
        try:
            if event.name.endswith(f".{_CONNECT}"):
                await self._arrive(state, not event.payload.get(_FIRST))
            else:
                await self._recognise(state)
        except (SQLAlchemyError, OSError) as fault:
            # Not raised: the answer to an error is an event, which would come here again and fail again.
            _log.warning("session not read event=%s reason=%s", event.name[:120], type(fault).__name__)
            return await self._unread(state)
        return None


def exists(name: str) -> bool:
    """Return whether a screen may call this handler; screens never call Reflex's own `setvar` and `hydrate`."""
    return name in RegistrationContext.get().event_handlers and not name.endswith(_UNUSED)


def check(name: str, payload: Mapping[str, Any]) -> None:
    """Raise Refused unless the payload matches the handler's arguments."""
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
        # A browser that connects may have stored nothing.
        if payload.get("vars") is not None or name.endswith(f".{_STORAGE}"):
            _check_storage(payload.get("vars"))
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
    """Raise Refused for a text that cannot be stored or sent, however deep, or a number that a browser cannot have."""
    for value in chain.from_iterable(levels(payload)):
        if isinstance(value, str) and not can_be_kept(value):
            raise Refused("a text has characters that cannot be stored")
        if isinstance(value, int) and abs(value) > LARGEST_NUMBER:
            raise Refused("a number is too large")


def _unwrapped(value: Any) -> Any:
    """Return the value as the handler gets it: a submitted form arrives as a list of names and values."""
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
        raise Refused("storage is not an object")
    for key, value in cast(dict[str, object], values).items():
        path, _, variable = key.rpartition(".")
        owner = RegistrationContext.get().base_states.get(path)
        if owner is None or not owner._is_client_storage(variable.removesuffix(FIELD_MARKER)):
            raise Refused("not a stored variable")
        if not isinstance(value, str) or len(value) > STORED_LENGTH:
            raise Refused("a stored value is not a short text")


@functools.cache
def _contract(handler: Handler) -> dict[str, tuple[TypeAdapter[Any], bool]]:
    """Return a validator for each argument of a handler, and whether the argument is required."""
    function = handler.func if isinstance(handler, functools.partial) else handler
    hints = get_type_hints(function)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    return {
        one.name: (TypeAdapter(hints.get(one.name, Any), config=_STRICT), one.default is inspect.Parameter.empty)
        for one in parameters
    }


def public(handler: Handler) -> Any:
    """Mark a handler that works without a session."""
    return handler


def background(handler: Any) -> Any:
    """Mark a handler that runs beside others and takes the state's lock only inside `async with self`."""
    return rx.event(background=True)(handler)


def handshake_session_id(state: BaseState) -> str | None:
    """Return the session id from the HttpOnly cookie of the socket's handshake, which no script can set."""
    return sessions.session_id_from_cookie_header(state.router.headers.cookie)


async def actor_of(state: BaseState) -> Actor | None:
    """Return the person who is signed in on this socket, read from the database; None if nobody is."""
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


async def _counted_actor(state: BaseState) -> Actor:
    actor = await _required_actor(state)
    await rate_limits.spend(rate_limits.WRITES, actor.user_id)
    return actor


def signed_in(handler: Callable[Concatenate[Any, Actor, P], Any]) -> Any:
    """Pass the signed-in actor to the handler as its first argument, resolved at every call; raise without one.

    `state.core.errors` turns NotSignedIn into the signed-out view.
    """
    return _guarded(handler, _required_actor)


def writes(handler: Callable[Concatenate[Any, Actor, P], Any]) -> Any:
    """Pass the signed-in actor as `signed_in` does, to a handler that changes something.

    Its calls and the person's changes by the API count together towards LIMIT_WRITES. Raises TooMany.
    """
    return _guarded(handler, _counted_actor)


def _guarded(handler: Callable[Concatenate[Any, Actor, P], Any], who: Callable[[BaseState], Awaitable[Actor]]) -> Any:
    @functools.wraps(handler)
    async def streamed(self: BaseState, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[Any]:
        request_ids.begin()
        actor = await who(self)
        async for outcome in handler(self, actor, *args, **kwargs):
            yield outcome

    @functools.wraps(handler)
    async def awaited(self: BaseState, *args: P.args, **kwargs: P.kwargs) -> Any:
        request_ids.begin()
        return await handler(self, await who(self), *args, **kwargs)

    guarded: Any = streamed if inspect.isasyncgenfunction(handler) else awaited
    # Reflex and the gate must see the arguments that the browser sends, which are all except the actor.
    signature = inspect.signature(handler)
    names = list(signature.parameters)
    hints = get_type_hints(handler)
    guarded.__signature__ = signature.replace(
        parameters=[one for name, one in signature.parameters.items() if name != names[1]]
    )
    guarded.__annotations__ = {name: hint for name, hint in hints.items() if name not in (names[1], "return")}
    del guarded.__wrapped__
    return guarded
