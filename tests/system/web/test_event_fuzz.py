"""Whatever a stranger sends to any handler, nothing crashes, and nobody else's data comes back."""

import os
import random
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from sqlmodel import col, select
from websockets.exceptions import ConnectionClosed

import models
from models import Breaker, Event, Grant, Rule, Server, Wallet, transaction
from services.core import audit
from services.core.addresses import shorten
from state.dashboard.server_page import TABS
from tests.jobs.town import Town
from tests.sandbox.control import SandboxControl
from tests.system.web.conftest import Web, sign_in
from tests.system.web.sockets import socket

ROUNDS = int(os.environ.get("FUZZ_ROUNDS", "1"))
"""Payloads of each kind for each handler; `make fuzz` has many more."""
LAST = "reflex___state____state.state___core___toasts____toast_state.show"
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 2**31, 2**63, 10**300, 1.5, -0.0, "", " ", "0", "-1", "a", "\x00", "\ud800", "‮", "a" * 5_000,
    "'; DROP TABLE rule; --", "<script>alert(1)</script>", "../../etc/passwd", "@everyone", "=cmd|'/c'!A1",
    "0x" + "0" * 40, "vitalik.eth", "https://opensea.io/collection/x", "http://169.254.169.254/", "1150000000000000999",
    [], {}, [[]], {"a": {}}, ["a"], {"__reflex_form_data__": []}, {"__reflex_form_data__": [["a", "b"]]},
    {"__reflex_form_data__": [["a", None]]},
)  # fmt: skip


@cache
def handlers() -> dict[str, dict[str, Any]]:
    """Return every handler that a socket can name, with its arguments and its guard."""
    from reflex_base.registry import RegistrationContext

    import app.app  # noqa: F401  (every State is there once the app is)
    from state.core.gate import _contract, exists

    return {
        name: {argument: adapter.validate_python for argument, (adapter, _) in _contract(known.handler.fn).items()}
        for name, known in RegistrationContext.get().event_handlers.items()
        if exists(name) and ".tests___" not in name
    }


def right_kinds(checks: dict[str, Any], rng: random.Random, pool: Sequence[Any]) -> dict[str, Any]:
    """Generate arguments of the kinds that a handler takes, with values of this pool where some fit."""
    fitting = {argument: [value for value in pool if _fits(check, value)] for argument, check in checks.items()}
    return {argument: rng.choice(values) if values else None for argument, values in fitting.items()}


def _fits(check: Callable[[Any], Any], value: Any) -> bool:
    try:
        check(value)
    except ValueError:
        return False
    return True


def payloads(name: str, checks: dict[str, Any], rng: random.Random, rounds: int, ids: Sequence[Any]) -> Iterator[Any]:
    """Generate payloads for one handler: others' ids, odd values of the right kinds, and wrong or missing arguments."""
    internal = name.endswith(("hydrate_and_load", "update_vars_internal"))
    for _ in range(rounds):
        if not internal:
            yield right_kinds(checks, rng, (*ids, True, "delete", "pause", "active"))
            yield right_kinds(checks, rng, ODD)
        some = [argument for argument in [*checks, "more", "actor", "self"] if rng.random() < 0.6]
        yield {argument: rng.choice(ODD) for argument in rng.choice([list(checks), some])}


def faults(log: str) -> set[str]:
    """Return where each traceback of a log ends, and its error."""
    found: set[str] = set()
    for part in log.split("Traceback (most recent call last):")[1:]:
        lines = [line for line in part.splitlines() if line.strip()]
        end = next((number for number, line in enumerate(lines) if not line.startswith(" ")), 0)
        places = [line.strip() for line in lines[:end] if line.strip().startswith("File")]
        found.add(f"{places[-1] if places else '?'}: {lines[end]}")
    return found


async def fuzz(web: Web, session: str | None, seed: int, rounds: int, theirs: "Theirs") -> list[str]:
    """Send everything to every handler from one tab after another; return all answers."""
    rng, got = random.Random(seed), []
    work = [
        (name, one) for name, checks in handlers().items() for one in payloads(name, checks, rng, rounds, theirs.ids)
    ]
    rng.shuffle(work)
    places = ["/", "/dashboard", "/dashboard/server/99999999999", "/account?x=%00", "/x/../y", "//e", *theirs.places]
    for start in range(0, len(work), 90):  # as many as a socket may send at once
        async with socket(web, session) as tab:
            for name, payload in work[start : start + 90]:
                try:
                    await tab.event(name, payload, rng.choice(places))
                except ConnectionClosed:
                    break
            try:
                # Its answer shows that the earlier ones were carried out: a tab's events are handled in order.
                last = f"last of {start}"
                await tab.event(LAST, {"title": last, "text": "", "destructive": False})
                await tab.until(last)
            except ConnectionClosed:
                assert tab.reason, f"closed without a reason:\n{web.logged()[-3_000:]}"
            got += tab.got
    return got


@dataclass(frozen=True)
class Theirs:
    """A server of other people: its identifiers and content, its screens, and words that only its people have."""

    server_id: int
    ids: tuple[Any, ...]
    places: tuple[str, ...]
    words: tuple[str, ...]


@asynccontextmanager
async def others(web: Web, sandbox_url: str, person: str | None) -> AsyncIterator[tuple[Theirs, str | None]]:
    """A server of others, in use, and the session of a person (if given) who has just lost all rights there."""
    await models.use(web.database)
    async with SandboxControl(sandbox_url) as control:
        town = Town(control)
        await town.build("ada", "carol", *([person] if person else []))
        session = None
        if person:
            who = {"guild": town.name, "user": town.people[person]["id"], "role": "Admin"}
            await town.call("members", action="add_role", **who)
            await town.see()
            session = sign_in(web.url, town.people[person]["username"])
            await town.call("members", action="remove_role", **who)
        await town.see()
        await town.prove("carol")
        rule_id, role_id, carol = await town.rule("Holder"), await town.role("Holder"), town.people["carol"]["id"]
        name, batch = f"Rule {uuid.uuid4().hex}", uuid.uuid4()
        await town.change(rule_id, name=name)
        async with transaction() as db:
            db.add(Breaker(server_id=town.server_id, role_id=role_id, would_lose=7, holders=9))
            about = {"server_id": town.server_id, "role_id": role_id, "subject": carol, "batch": batch}
            await audit.record(db, audit.line("role.taken", **about))
            wallet = (await db.exec(select(Wallet).where(Wallet.address == town.wallet("carol")))).one()
        guild = (await town.guild())["id"]
        server, rule = f"serverId={town.server_id}", f"ruleId={rule_id}"
        yield (
            Theirs(
                town.server_id,
                (town.server_id, rule_id, wallet.id, carol, role_id, guild, str(batch), str(town.server_id)),
                (
                    *(f"/server-config?{server}&tab={tab}" for tab in TABS),
                    f"/add-verification-rule?{server}&{rule}", f"/server-config?{server}&tab=members&member={carol}",
                    f"/dashboard?server={guild}", f"/dashboard/server/{town.server_id}",
                ),
                (name, town.people["carol"]["username"], town.wallet("carol"), shorten(town.wallet("carol"))),
            ),
            session,
        )  # fmt: skip
    await models.use(None)


async def kept(theirs: Theirs) -> list[list[dict[str, Any]]]:
    """Return all of the others' rows that an event could change, except what members decide about themselves."""
    done = col(Event.kind).not_in(("member.chose", "member.forgotten"))
    async with transaction() as db:
        found = [
            (await db.exec(select(Server).where(Server.id == theirs.server_id))).all(),
            (await db.exec(select(Rule).where(Rule.server_id == theirs.server_id))).all(),
            (await db.exec(select(Grant).where(Grant.server_id == theirs.server_id))).all(),
            (await db.exec(select(Breaker).where(Breaker.server_id == theirs.server_id))).all(),
            (await db.exec(select(Event).where(Event.server_id == theirs.server_id, done))).all(),
            (await db.exec(select(Wallet).where(Wallet.address == theirs.words[2]))).all(),
        ]
        return [[row.model_dump() for row in rows] for rows in found]


@pytest.mark.parametrize("person", [None, "outcast"])
async def test_no_payload_to_any_handler_does_harm(web: Web, sandbox_url: str, person: str | None) -> None:
    ada = sign_in(web.url, "ada")
    async with others(web, sandbox_url, person) as (theirs, session):
        before, start = await kept(theirs), len(web.logged())
        got = "".join(await fuzz(web, session, 7, ROUNDS, theirs))
        said = web.logged()[start:]
        assert faults(said) == set()
        assert "Something went wrong on our side" not in got
        assert [word for word in (ada, *theirs.words) if word in got] == []
        assert await kept(theirs) == before
        async with socket(web, ada) as after:
            await after.until('"member"')
