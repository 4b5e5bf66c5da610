"""Whatever a stranger sends to whichever handler: nothing falls over, and nobody else's things come back."""

import json
import os
import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from tests.web.conftest import Web, sign_in
from tests.web.sockets import socket

ROUNDS = int(os.environ.get("FUZZ_ROUNDS", "1"))
"""Payloads of each kind for each handler; `make fuzz` has many more."""
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 2**31, 2**63, 10**300, 1.5, -0.0, "", " ", "0", "-1", "a", "\x00", "\ud800", "‮", "a" * 5_000,
    "'; DROP TABLE rule; --", "<script>alert(1)</script>", "../../etc/passwd", "@everyone", "=cmd|'/c'!A1",
    "0x" + "0" * 40, "vitalik.eth", "https://opensea.io/collection/x", "http://169.254.169.254/", "1150000000000000999",
    [], {}, [[]], {"a": {}}, ["a"], {"__reflex_form_data__": []}, {"__reflex_form_data__": [["a", "b"]]},
    {"__reflex_form_data__": [["a", None]]},
)  # fmt: skip


@cache
def handlers() -> dict[str, dict[str, Any]]:
    """Every handler that any socket can name, with the arguments it takes and what checks each."""
    from reflex_base.registry import RegistrationContext

    import app.app  # noqa: F401  (every State is there once the app is)
    from state.gate import _contract, exists

    return {
        name: {argument: adapter.validate_python for argument, (adapter, _) in _contract(known.handler.fn).items()}
        for name, known in RegistrationContext.get().event_handlers.items()
        if exists(name) and ".tests___" not in name
    }


def right_kinds(checks: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Arguments of the kinds that a handler says it takes, with odd values."""
    fitting = {argument: [value for value in ODD if _fits(check, value)] for argument, check in checks.items()}
    return {argument: rng.choice(values) if values else None for argument, values in fitting.items()}


def _fits(check: Callable[[Any], Any], value: Any) -> bool:
    try:
        check(value)
    except ValueError:
        return False
    return True


def payloads(name: str, checks: dict[str, Any], rng: random.Random, rounds: int) -> Iterator[Any]:
    """What is sent to one handler: of the right kinds, and of any kinds, which may be too little or too much."""
    internal = name.endswith(("hydrate_and_load", "update_vars_internal"))
    for _ in range(rounds):
        if not internal:
            yield right_kinds(checks, rng)
        some = [argument for argument in [*checks, "more", "actor", "self"] if rng.random() < 0.6]
        yield {argument: rng.choice(ODD) for argument in rng.choice([list(checks), some])}


def faults(log: str) -> set[str]:
    """Where each traceback of a log ends, and with what."""
    found: set[str] = set()
    for part in log.split("Traceback (most recent call last):")[1:]:
        lines = [line for line in part.splitlines() if line.strip()]
        end = next((number for number, line in enumerate(lines) if not line.startswith(" ")), 0)
        places = [line.strip() for line in lines[:end] if line.strip().startswith("File")]
        found.add(f"{places[-1] if places else '?'}: {lines[end]}")
    return found


async def fuzz(web: Web, session: str | None, seed: int, rounds: int) -> list[str]:
    """Send everything to every handler from one tab after another; all that came back."""
    rng, got = random.Random(seed), []
    work = [(name, one) for name, checks in handlers().items() for one in payloads(name, checks, rng, rounds)]
    rng.shuffle(work)
    places = [
        "/",
        "/dashboard",
        "/dashboard/server/1",
        "/dashboard/server/99999999999",
        "/account?x=%00",
        "/x/../y",
        "//e",
    ]
    for start in range(0, len(work), 90):  # as many as a socket may send at once
        async with socket(web, session) as tab:
            for name, payload in work[start : start + 90]:
                try:
                    await tab.event(name, payload, rng.choice(places))
                except ConnectionClosed:
                    break
            try:
                await tab.alive()
            except ConnectionClosed:
                assert tab.reason, f"closed without a reason:\n{web.logged()[-3_000:]}"
            got += tab.got
    return got


@pytest.mark.parametrize("person", [None, "mallory"])
async def test_no_payload_to_any_handler_does_harm(web: Web, person: str | None) -> None:
    before = len(web.logged())
    ada = sign_in(web.url, "ada")
    mine = sign_in(web.url, person) if person else None
    got = "".join(await fuzz(web, mine, 7, ROUNDS))
    said = web.logged()[before:]
    assert faults(said) == set()
    assert "Something went wrong on our side" not in got
    assert ada not in got
    assert json.dumps("Cool Holders Club") not in got or person is None
    async with socket(web, ada) as after:
        await after.until('"member"')
