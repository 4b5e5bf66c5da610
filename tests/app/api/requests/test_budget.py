"""No field of any call holds the event loop for long, even with the largest value that it may carry.

Fields come from the description of the calls, so a new one is covered at once. The measure is the thread's processor
time beyond that of the same call with small values, as the least of three runs.

Calls about the same thing that have the same field try it with different kinds of text, which together are all kinds.
`make fuzz` tries every field of every call with every kind.
"""

import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, cast
from urllib.parse import quote

import pytest
from sqlmodel import col, delete
from starlette.types import Message, Scope

from app.http.hosts import HostGate
from models import Rule, transaction
from services.rules.expression import MAX_LEAVES
from settings import settings
from tests.app.api.browsers import Browser
from tests.app.api.test_main_path import builders, contract, rule, with_server, world
from tests.house.test_budget import CONTRACT, LONG, MOST_SECONDS, TEXTS, cost

__all__ = ["world"]

MOST_BODY = 64_000
PARTS = 6
SMALL = {
    "contractAddress": CONTRACT, "contract": CONTRACT, "blockchain": "base", "verificationType": "basic",
    "ruleName": "Cats", "roleName": "Cat", "minTokens": 1, "maxTokens": 9, "tokenIds": ["1"], "traitType": "Fur",
    "traitValue": "Gold", "verificationMethod": "opensea_bio", "address": CONTRACT,
    "walletAddress": CONTRACT, "state": "active", "delete": False,
}  # fmt: skip
Fields = dict[str, Any]
RULE: Fields = {"verificationType": "token_id", "expression": None}
TRAIT_RULE: Fields = {"verificationType": "trait", "expression": None}
READ_BY = {"traitType": TRAIT_RULE, "traitValue": TRAIT_RULE}
"""The kind of rule that reads a field; all other fields are read by every kind."""
RULES_PATH = "/api/verification-rules"
WORKING = {
    ("GET", RULES_PATH): 200, ("POST", RULES_PATH): 201, ("POST", f"{RULES_PATH}/preview"): 200,
    ("GET", f"{RULES_PATH}/{{rule_id}}"): 200, ("PATCH", f"{RULES_PATH}/{{rule_id}}"): 200,
}  # fmt: skip
"""The status that the most expensive calls return for their small values."""
EVERY_KIND = "FUZZ_EXAMPLES" in os.environ
"""Whether each call tries each field with every kind of text; `make fuzz` does."""
OF_OBJECTS = 4
"""Kinds of text that are tried with each object; the objects of a field begin with different ones."""


def operations() -> list[tuple[str, str]]:
    """Return every call by its method and path; those that may end the session come last."""
    from app.api import api

    found = [(method, path) for path, methods in api.openapi()["paths"].items() for method in methods]
    return sorted(found, key=lambda one: one[0] == "delete" or one[1].startswith("/api/auth"))


class Call:
    """One call according to its description: its fields, and small values for all of them."""

    def __init__(self, method: str, path: str, small: Fields) -> None:
        from app.api import api

        self._document = api.openapi()
        self.method, self.path, self._known = method.upper(), path, small
        found = self._document["paths"][path][method]
        self._places = {one["name"]: (one["in"], self._schema(one["schema"])) for one in found.get("parameters", [])}
        body = found.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
        self._body: Fields | None = None if body is None else self._schema(body).get("properties", {})

    def _schema(self, schema: Fields) -> Fields:
        while "$ref" in schema:
            schema = self._document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return schema

    def small(self) -> tuple[Fields, Fields | None]:
        """Return the parameters and the body with small values."""
        given = {name: self._small(name, schema) for name, (_, schema) in self._places.items()}
        if self._body is None:
            return given, None
        return given, {name: self._small(name, schema) for name, schema in self._body.items()}

    def _small(self, name: str, schema: Fields) -> Any:
        if name in self._known:
            return self._known[name]
        kinds = self._kinds(schema)
        small = {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}, "null": None}
        return next((small[kind] for kind in ("null", *kinds) if kind in kinds and kind in small), "1")

    def _kinds(self, schema: Fields) -> set[str]:
        """Return the types that a value may have: string, array and object where the description leaves it open."""
        schema = self._schema(schema)
        if "anyOf" in schema:
            return set().union(*(self._kinds(one) for one in schema["anyOf"]))
        return {schema["type"]} if "type" in schema else {"string", "array", "object"}

    def large(self, kind: str) -> Iterator[tuple[str, str, Fields, Fields | None]]:
        """Yield the name, form, parameters and body for each field in turn, in each form with its largest value."""
        parameters, body = self.small()
        for name, (_, schema) in self._places.items():
            for form, value in self._largest(schema, TEXTS[kind]):
                if not isinstance(value, list | dict):
                    yield name, form, {**parameters, name: value}, body
        for name, schema in (self._body or {}).items():
            for form, value in self._largest(schema, TEXTS[kind]):
                changed = READ_BY.get(name, RULE) if "verificationType" in cast("Fields", self._body) else {}
                yield name, form, parameters, {**cast("Fields", body), **changed, name: value}

    def _largest(self, schema: Fields, text: str) -> Iterator[tuple[str, Any]]:
        kinds = self._kinds(schema)
        if kinds & {"integer", "number"}:
            yield "number", 2**53
        if "string" in kinds:
            yield "text", text[: self._schema(schema).get("maxLength", LONG)]
        if "array" in kinds:
            yield "list", text.split(",")
            yield "list of one", [text]
        if "object" in kinds:
            leaf = {"type": "token_id", "chain": "base", "contract": self._known["contract"]}
            inner = dict.fromkeys(self._schema(schema).get("properties", {}), text)
            objects = (
                {**leaf, "tokenIds": [text]}, {**leaf, "tokenIds": text.split(",")}, {"a": text}, inner,
                {**leaf, "type": "trait", "trait": {"type": text[: LONG // 2], "value": text[: LONG // 2]}},
                {"all": [{**leaf, "tokenIds": text[: LONG // MAX_LEAVES // 2].split(",")}] * MAX_LEAVES},
            )  # fmt: skip
            for number, value in enumerate(objects):
                yield f"object {number}", value

    def scope(self, parameters: Fields, body: bytes, session: str) -> Scope:
        """Return the call as the web server hands it over."""
        path, query = self.path, list[str]()
        for name, (where, _) in self._places.items():
            if parameters[name] is None:
                continue
            # A byte takes up to three in a URL, and the web server reads 64 KiB.
            text = str(parameters[name])[: LONG // 9]
            if where == "path":
                path = path.replace(f"{{{name}}}", text)
            else:
                query.append(f"{name}={quote(text, safe='')}")
        headers = [
            ("host", "localhost:3000"), ("origin", "http://localhost:3000"), ("cookie", f"hf_session={session}"),
            ("content-type", "application/json"), ("content-length", str(len(body))),
        ]  # fmt: skip
        return {
            "type": "http", "http_version": "1.1", "method": self.method, "scheme": "http", "root_path": "",
            "path": path, "raw_path": quote(path).encode(), "query_string": "&".join(query).encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers],
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 3000),
        }  # fmt: skip


@dataclass(frozen=True)
class Admin:
    """The session of an admin, and the small values that name their server, a role, a rule and a collection."""

    session: str
    place: Fields


@pytest.fixture
async def ada(world: Fields, new_browser: Callable[[], Browser], monkeypatch: pytest.MonkeyPatch) -> Admin:
    """An admin without rate limits."""
    for name in ("WRITES", "PROOFS", "LOOKUPS", "PREVIEWS", "READS", "RECHECKS", "SIGN_INS"):
        monkeypatch.setenv(f"LIMIT_{name}", "100000")
    monkeypatch.setenv("PREVIEWS_PER_DAY", "100000")
    settings.cache_clear()
    browser = new_browser()
    await browser.sign_in("ada")
    number = await with_server(browser, builders(world))
    made = await browser.client.post("/api/verification-rules", json=rule(world, number))
    assert made.status_code == 201, made.text
    assert browser.session_id is not None
    asked = {"contractAddress": contract(world), "contract": contract(world), "roleId": made.json()["roleId"]}
    place = {"server_id": number, "serverId": number, "rule_id": made.json()["id"]}
    return Admin(browser.session_id, {**place, **asked})


async def answer(call: Call, parameters: Fields, body: Fields | None, session: str) -> int:
    """Make the call, and return its status."""
    from app.api import api

    sent = b"" if body is None else json.dumps(body, ensure_ascii=False).encode()
    status: list[int] = []
    waiting: list[Message] = [{"type": "http.request", "body": sent}]

    async def receive() -> Message:
        return waiting.pop() if waiting else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            status.append(message["status"])

    await HostGate(api)(call.scope(parameters, sent, session), receive, send)
    return status[0]


async def forget_rules(but: int) -> None:
    """Delete all rules but one: the server would soon have as many as it may."""
    async with transaction() as db:
        await db.exec(delete(Rule).where(col(Rule.id) != but))


def thing(path: str) -> str:
    """Return what a call is about: the first fixed part of its path, or what of a server."""
    first, *rest = [part for part in path.removeprefix("/api").split("/") if part and not part.startswith("{")]
    return (rest[0] if first == "servers" and rest else first).partition(".")[0]


@cache
def sharing() -> dict[tuple[str, str, str], list[tuple[str, str]]]:
    """Return the calls, by method and path, that are about the same thing and have the same field in the same form."""
    found = defaultdict[tuple[str, str, str], list[tuple[str, str]]](list)
    for method, path in operations():
        call = Call(method, path, SMALL)
        for name, form, _, _ in call.large("letters"):
            found[thing(path), name, form].append((call.method, path))
    return found


def kinds_for(call: Call, name: str, form: str) -> set[str]:
    """Return the kinds of text with which the call tries a field in this form."""
    kinds, calls = list(TEXTS), sharing()[thing(call.path), name, form]
    if EVERY_KIND:
        return set(kinds)
    kind, _, number = form.partition(" ")
    of_all = OF_OBJECTS if kind == "object" else len(kinds)
    own = -(-of_all // len(calls))
    first = calls.index((call.method, call.path)) * own + (int(number) * OF_OBJECTS if kind == "object" else 0)
    return {kinds[place % len(kinds)] for place in range(first, first + own)}


def test_calls_about_the_same_thing_together_try_each_of_their_fields_with_every_kind_of_text() -> None:
    tried = defaultdict[tuple[str, str], set[str]](set)
    for method, path in operations():
        call = Call(method, path, SMALL)
        for name, form, _, _ in call.large("letters"):
            tried[thing(path), name] |= set(TEXTS) if form == "number" else kinds_for(call, name, form)
            assert kinds_for(call, name, form)
    assert len(tried) > 90
    assert {name: kinds for name, kinds in tried.items() if kinds != set(TEXTS)} == {}


@pytest.mark.parametrize("part", range(PARTS))
async def test_no_field_of_a_call_holds_the_loop(ada: Admin, part: int) -> None:
    found: dict[str, float] = {}
    for method, path in operations()[part::PARTS]:
        call = Call(method, path, {**SMALL, **ada.place})

        statuses = list[int]()

        async def spent(
            parameters: Fields, body: Fields | None, call: Call = call, statuses: list[int] = statuses
        ) -> float:
            async def make() -> None:
                statuses.append(await answer(call, parameters, body, ada.session))
                assert statuses[-1] != 500

            try:
                return await cost(make)
            finally:
                if statuses[-1:] == [201]:
                    await forget_rules(ada.place["rule_id"])

        usual = await spent(*call.small())
        if (expected := WORKING.get((call.method, path))) is not None:
            assert set(statuses) == {expected}, path  # otherwise the large values might be refused before the real work
        made = set[str]()  # a number's largest value is the same for every kind of text, so it is tried once
        for kind in TEXTS:
            for name, form, parameters, body in call.large(kind):
                if kind not in kinds_for(call, name, form):
                    continue
                asked = json.dumps([parameters, body], ensure_ascii=False)
                if asked not in made and len(json.dumps(body, ensure_ascii=False).encode()) <= MOST_BODY:
                    made.add(asked)
                    found[f"{call.method} {path} {name}, {kind}"] = await spent(parameters, body) - usual
    assert len(found) > 20
    assert {label: seconds for label, seconds in found.items() if seconds > MOST_SECONDS} == {}
