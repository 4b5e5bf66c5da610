"""No single message holds the event loop for long.

Only here and in `tests/app/api/requests/test_budget.py` does a test assert a time. It is the thread's own
processor time, which other work on the machine does not change, and the least of three measurements.
"""

import asyncio
import inspect
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

import pytest
import reflex as rx
from reflex_base.registry import RegistrationContext

from app.http.sockets.gate import LARGEST_MESSAGE, _Listener, _Pace, _Refused
from services.core.actors import Actor
from services.core.errors import FieldRefused, HoldfastError
from services.rules import draft
from services.rules.draft import RuleDraft, check, expression_of
from services.rules.expression import MAX_LEAVES
from services.rules.wording import in_words
from state.core import gate
from state.core.watchers import Watcher
from state.rule_form.condition_draft import ConditionDraft
from state.rule_form.conditions import ROOT
from state.rule_form.rule_form import RuleFormState
from tests.state.conftest import Beside
from tests.system.web.test_event_fuzz import handlers

MOST_SECONDS = 0.05
ADDITIONS, ADDITIONS_SECONDS = 200_000, 0.0075
"""The number of additions that measures how much slower a machine is than the one for which the limits were set."""
GATE_SECONDS = 0.002
LONG = 60_000
CONTRACT = "0x" + "11" * 20
INPUTS = ("contractAddress", "tokenEntry", "name", "query", "address", "serverId", "discordServerId")
TEXTS = {
    "ids": ",".join(map(str, range(12_000)))[:LONG],
    "distant ids": ",".join(str(2**256 - 1 - 2 * number) for number in range(500)),
    "ranges": ",".join(f"{9 * number}-{9 * number + 5}" for number in range(4_000))[:LONG],
    "separators": "," * LONG,
    "digits": "9" * LONG,
    "spaces": ">=" + " " * (LONG - 10) + "a\nb",
    "few spaces": ">=" + " " * 480 + "a\nb",
    "letters": "a" * LONG,
    "dots": "a." * (LONG // 2),
    "brackets": "[" * LONG,
    "slashes": "https://" + "/a" * (LONG // 2 - 10),
    "marks": "≥\u0301" * 8_000,
}
ADA = Actor(1, "1", "ada")


def forgotten() -> None:
    """Forget the results of earlier checks."""
    draft._checked_leaf.cache_clear()


def slowness() -> float:
    """Return the factor by which this machine is slower right now than ADDITIONS_SECONDS assumes; at least 1."""
    times: list[float] = []
    for _ in range(3):
        start, total = time.thread_time(), 0
        for number in range(ADDITIONS):
            total += number
        times.append(time.thread_time() - start)
    return max(1.0, min(times) / ADDITIONS_SECONDS)


async def cost(run: Callable[[], Awaitable[object]], before: Callable[[], None] = forgotten) -> float:
    """Return the processor time of a call in this thread, in seconds: the least of three, each after `before`.

    A time of MOST_SECONDS or more is divided by the slowness of the machine.
    """
    times: list[float] = []
    for _ in range(3):
        before()
        start = time.thread_time()
        await run()
        times.append(time.thread_time() - start)
        if times[-1] < MOST_SECONDS:
            break
        times[-1] /= slowness()
    return min(times)


def largest(argument: inspect.Parameter, text: str) -> Any:
    """Return the largest value for an argument of this kind."""
    kind = argument.annotation
    if kind is bool:
        return True
    if kind is int:
        return gate.LARGEST_NUMBER
    if kind is str:
        return text
    if "float" in str(kind):
        return 1e308
    if "dict" in str(kind):
        return {name: text[: LONG // len(INPUTS)] for name in INPUTS} if len(text) < 100 else {"tokenEntry": text}
    return text


def arguments(handler: Any, text: str) -> dict[str, Any]:
    """Return the largest payload for a handler."""
    parameters = list(inspect.signature(handler).parameters.values())[1:]
    texts = sum(1 for one in parameters if one.annotation is str) or 1
    return {one.name: largest(one, text[: LONG // texts]) for one in parameters}


async def run(state: Any, handler: Any, payload: dict[str, Any]) -> None:
    """Run a handler to completion; a HoldfastError counts as an answer."""
    try:
        outcome = handler(state, **payload)
        if inspect.isasyncgen(outcome):
            async for _ in outcome:
                pass
        elif inspect.isawaitable(outcome):
            await outcome
    except HoldfastError:
        return


def ours() -> Iterator[tuple[str, Any]]:
    """Yield every handler of ours that a socket can name."""
    for name in handlers():
        function = RegistrationContext.get().event_handlers[name].handler.fn
        if inspect.unwrap(function).__module__.startswith("state."):
            yield name, function


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses, and every chain is in use."""
    pause = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda seconds: pause(0))
    monkeypatch.setattr(Watcher, "_pause", lambda watcher, seconds: pause(0))
    monkeypatch.setattr(draft, "chain_refusal", lambda chain: None)


@pytest.mark.parametrize("kind", list(TEXTS))
async def test_no_handler_that_a_stranger_reaches_holds_the_loop(at_once: None, kind: str) -> None:
    found: dict[str, float] = {}
    for name, function in ours():
        payload = arguments(function, TEXTS[kind])
        owner = RegistrationContext.get().base_states[name.rpartition(".")[0]]

        async def send(name: str = name, function: Any = function, owner: Any = owner, payload: Any = payload) -> None:
            with suppress(gate.Refused):
                gate.check(name, payload)
            state = await rx.State().get_state(owner)
            await run(
                Beside(state) if inspect.isasyncgenfunction(function) or "watch" in name else state, function, payload
            )

        found[name] = await cost(send)
    assert len(found) > 80
    assert {name: spent for name, spent in found.items() if spent > MOST_SECONDS} == {}


async def test_the_gate_itself_costs_next_to_nothing() -> None:
    """It runs before every event, and an address may send fifty events a second."""
    name, payload = "reflex___state____state.state___core___toasts____toast_state.show", {"text": "a" * LONG}

    async def checked() -> None:
        gate.check(name, {**payload, "title": "", "destructive": False})

    assert await cost(checked) < GATE_SECONDS


@pytest.fixture
async def full_form(at_once: None, monkeypatch: pytest.MonkeyPatch) -> RuleFormState:
    """A form with as many conditions as a rule can have, each with the most distant ids or the longest trait."""

    async def somebody(state: object) -> Actor:
        return ADA

    monkeypatch.setattr(gate, "actor_of", somebody)
    form = await rx.State().get_state(RuleFormState)
    form._clear()
    form.role_id = "77"
    for place in range(MAX_LEAVES):
        if place:
            form._add(ROOT)
        ids = tuple(str(2**256 - 1 - 2000 * place - 2 * number) for number in range(499))
        trait = {"trait_type": "Level", "trait_compare": "", "trait_value": ">=" + " " * 480 + "1"}
        kind: dict[str, Any] = {"type": "token_id", "token_ids": ids} if place % 4 != 3 else {"type": "trait", **trait}
        form._fill_in(ConditionDraft(contract=CONTRACT, chain="base", collection="Cats", **kind))
    form._changed()
    return form


@pytest.mark.parametrize("kind", list(TEXTS))
async def test_no_event_of_a_full_rule_form_holds_the_loop(full_form: RuleFormState, kind: str) -> None:
    found: dict[str, float] = {}
    asks_outside = {"load", "load_roles", "look_for_bot", "save", "confirm", "preview", "take_offer", "enter_contract"}
    asks_outside |= {"refresh_collection", "try_call"}
    last = full_form._slots[-1]

    def as_it_was() -> None:
        forgotten()
        full_form._slots = (*full_form._slots[: MAX_LEAVES - 1], last)
        full_form._show(last.number)
        full_form._changed()

    names = [name for name in RuleFormState.event_handlers if name not in asks_outside | {"setvar"}]
    for name in names:
        function: Any = RuleFormState.event_handlers[name].fn
        payload = arguments(function, TEXTS[kind])
        if "number" in payload:
            payload["number"] = full_form.open

        async def send(function: Any = function, payload: Any = payload) -> None:
            await run(full_form, function, payload)

        found[name] = await cost(send, as_it_was)
    assert {"add_tokens", "negate", "enter_trait_value"} <= found.keys()
    assert {name: spent for name, spent in found.items() if spent > MOST_SECONDS} == {}


@pytest.mark.parametrize("kind", list(TEXTS))
async def test_no_field_of_a_rule_sent_by_a_call_holds_the_loop(at_once: None, kind: str) -> None:
    text = TEXTS[kind]
    leaf = {"type": "token_id", "chain": "base", "contract": CONTRACT, "tokenIds": [text]}
    many = {**leaf, "tokenIds": text.split(",")}
    trait = {"type": "trait", "chain": "base", "contract": CONTRACT, "trait": {"type": text, "value": text}}
    short = {**leaf, "tokenIds": text[: LONG // MAX_LEAVES].split(",")}
    good = RuleDraft("Cats", CONTRACT, "base", "token_id", "7", 1, token_ids=("1",))
    bodies = [
        *(replace(good, expression=one) for one in (leaf, many, trait, {"all": [short] * MAX_LEAVES})),
        *(replace(good, expression=one) for one in ({"all": [leaf] * 400}, json.loads("[" * 900 + "]" * 900))),
        replace(good, token_ids=(text,)), replace(good, token_ids=tuple(text.split(","))),
        replace(good, verification_type="trait", trait_type=text, trait_value=text),
        *(replace(good, **{name: text}) for name in
          ("rule_name", "contract_address", "blockchain", "verification_type", "role_id", "role_color",
           "removal_mode", "removal_hours", "min_tokens")),
    ]  # fmt: skip
    for number, body in enumerate(bodies):

        async def send(body: RuleDraft = body) -> None:
            with suppress(FieldRefused):
                in_words(expression_of(check(body)), {})

        assert await cost(send) < MOST_SECONDS, f"body {number} of {kind}"


@pytest.mark.parametrize("kind", list(TEXTS))
async def test_no_message_of_a_socket_holds_the_loop_before_it_is_an_event(kind: str) -> None:
    text = (TEXTS[kind] * 3)[: LARGEST_MESSAGE - 200]
    plain = json.dumps(text)[: LARGEST_MESSAGE - 200]
    said = [
        text, f"40/_event,{text}", f"42/_event,{text}", f'42/_event,["event",{text}]', f'42/_event,["event",{plain}]',
        f'42/_event,["event",{{"name":"a","payload":{{"a":{plain}}}}}]', "[" * LARGEST_MESSAGE,
        '42/_event,["event",' + "[" * (LARGEST_MESSAGE - 100),
    ]  # fmt: skip
    for message in said:

        async def send(message: str = message) -> None:
            listener = _Listener(cast(Any, None), cast(Any, None), lambda name: True, _Pace())
            listener._connected = True
            with suppress(_Refused):
                listener._check(message)

        assert await cost(send) < MOST_SECONDS, message[:40]
