"""What a hostile browser can send, and what of it reaches a handler."""

from typing import Any

import pytest
import reflex as rx
from reflex.state import UpdateVarsInternalState
from reflex_base.event import Event
from reflex_base.utils.format import format_event_handler

from services.core.actors import Actor
from services.runtime import rejected_requests
from state.core import gate
from state.core.gate import Refused, background, check, public, signed_in
from state.core.session import SessionState


class ProbeState(rx.State):
    """Handlers of every shape that screens have."""

    @public
    def take(self, text: str, number: int, choice: bool = False) -> None:
        """Take a text, a number and optionally a choice."""

    @public
    def measure(self, value: float | None) -> None:
        """Take a number or nothing."""

    @public
    def form(self, fields: dict[str, str]) -> None:
        """Take a form."""

    @signed_in
    async def guarded(self, actor: Actor, text: str) -> None:
        """Take a text from a signed-in person."""

    @background
    @signed_in
    async def slow(self, actor: Actor, number: int) -> None:
        """Take a number, beside others."""


def name_of(handler: str) -> str:
    return format_event_handler(ProbeState.event_handlers[handler])


@pytest.mark.parametrize(
    ("handler", "payload"),
    [
        ("take", {"text": "a", "number": 1}),
        ("take", {"text": "a", "number": 1, "choice": True}),
        ("measure", {"value": 2}),
        ("measure", {"value": 2.5}),
        ("measure", {"value": None}),
        ("form", {"fields": {"name": "value"}}),
        ("form", {"fields": {"__reflex_form_data__": [["name", "value"], ["more", ""]]}}),
        ("guarded", {"text": "a"}),
        ("slow", {"number": 3}),
    ],
)
def test_what_our_screens_send_passes(handler: str, payload: dict[str, Any]) -> None:
    check(name_of(handler), payload)
    # It passes because of its shape, and not because nothing is checked: with one argument more it is refused.
    with pytest.raises(gate.Refused, match="unknown arguments"):
        check(name_of(handler), {**payload, "one_more": 1})


@pytest.mark.parametrize(
    ("handler", "payload", "why"),
    [
        ("take", {"text": 5, "number": 1}, "text has a wrong type"),
        ("take", {"text": "a", "number": "1"}, "number has a wrong type"),
        ("take", {"text": "a", "number": True}, "number has a wrong type"),
        ("take", {"text": "a", "number": 1, "choice": 1}, "choice has a wrong type"),
        ("take", {"text": {"$ne": ""}, "number": 1}, "text has a wrong type"),
        ("take", {"text": None, "number": 1}, "text has a wrong type"),
        ("take", {"text": "a"}, "number is missing"),
        ("take", {"text": "a", "number": 1, "more": 1}, "unknown arguments"),
        ("take", {"text": "a" * gate.PAYLOAD_BYTES, "number": 1}, "too large"),
        ("measure", {"value": float("nan")}, "value has a wrong type"),
        ("measure", {"value": float("inf")}, "value has a wrong type"),
        ("form", {"fields": {"name": ["a"]}}, "fields has a wrong type"),
        ("form", {"fields": [["name", "value"]]}, "fields has a wrong type"),
        ("form", {"fields": {"__reflex_form_data__": [["name", {"a": 1}]]}}, "fields has a wrong type"),
        ("form", {"fields": {"__reflex_form_data__": "name"}}, "a form has a wrong shape"),
        ("form", {"fields": {"__reflex_form_data__": [["name"]]}}, "a form has a wrong shape"),
        ("form", {"fields": {"__reflex_form_data__": [[{"a": 1}, "value"]]}}, "a form has a wrong shape"),
        ("form", {"fields": {"__reflex_form_data__": [], "more": 1}}, "a form has a wrong shape"),
        ("take", {"text": {"__reflex_form_data__": []}, "number": 1}, "text has a wrong type"),
        ("guarded", {"text": "a", "actor": {"user_id": 1}}, "unknown arguments"),
        ("take", {"text": "a\x00b", "number": 1}, "characters that cannot be stored"),
        ("take", {"text": "\ud800", "number": 1}, "characters that cannot be stored"),
        ("form", {"fields": {"\udfff": "a"}}, "characters that cannot be stored"),
        ("form", {"fields": {"__reflex_form_data__": [["a", "\x00"]]}}, "characters that cannot be stored"),
        ("take", {"text": "a", "number": 2**53 + 1}, "a number is too large"),
        ("measure", {"value": -(10**300)}, "a number is too large"),
        ("setvar", {"var_name": "a", "value": 1}, "no such handler"),
        ("slow", {"actor": 1, "number": 1}, "unknown arguments"),
    ],
)
def test_everything_else_is_refused_before_the_handler(handler: str, payload: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused, match=why):
        check(name_of(handler), payload)


def test_an_unknown_handler_is_refused() -> None:
    with pytest.raises(Refused, match="no such handler"):
        check("reflex___state____state.os_system", {})


STORED = f"{SessionState.get_full_name()}.session_id_rx_state_"
UPDATE = format_event_handler(UpdateVarsInternalState.event_handlers["update_vars_internal"])


def test_a_stored_value_is_a_short_text() -> None:
    check(UPDATE, {"vars": {STORED: "abc"}})
    for value in ({"a": 1}, None, 5, ["x"], "x" * (gate.STORED_LENGTH + 1)):
        with pytest.raises(Refused, match="not a short text"):
            check(UPDATE, {"vars": {STORED: value}})


def test_only_stored_variables_can_be_set_from_outside() -> None:
    with pytest.raises(Refused, match="not a stored variable"):
        check(UPDATE, {"vars": {f"{SessionState.get_full_name()}.audience_rx_state_": "member"}})
    with pytest.raises(Refused, match="not a stored variable"):
        check(UPDATE, {"vars": {"nowhere.at_all": "x"}})
    for payload in (
        {"vars": [["a", "b"]]},
        {"vars": []},
        {"vars": ""},
        {"vars": 0},
        {"vars": False},
        {"vars": None},
        {},
    ):
        with pytest.raises(Refused, match="not an object"):
            check(UPDATE, payload)
    with pytest.raises(Refused, match="unknown arguments"):
        check(UPDATE, {"vars": {STORED: "abc"}, "self": 1})


async def test_thousands_of_refusals_are_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def nobody(*_: object) -> Any:
        pytest.fail("nothing of a refused event is run")

    rejected_requests.write()
    caplog.clear()
    gatekeeper, state = gate.Gate(nobody, nobody, nobody), rx.State()
    # An app can be created once in a process, and the gate uses none of it.
    app: Any = None
    event = Event(name=name_of("take"), payload={"text": 1, "number": 1})
    for _ in range(5_000):
        assert await gatekeeper.preprocess(app, state, event) is not None
    assert not caplog.messages
    rejected_requests.write()
    (line,) = caplog.messages
    assert line.startswith("rejected total=5000 kinds=1 ")
    assert line.endswith(": text has a wrong type']")
