"""Whatever a control call contains, it is done or refused in a sentence, at once."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.sandbox.conftest import Outside

ODD = (
    "null", "true", "-1", "1.5", "1e30", "1e400", "NaN", "Infinity", "9" * 5000, '"' + "9" * 5000 + '"',
    '"²"', '"\\ud800"', '""', '"/ "', "[]", "[1]", '["a", {}]', "{}", '{"a": 1}', '[{"name": "x"}]',
)  # fmt: skip
BASE = {"guild": "Base Builders"}
PERSON = {**BASE, "user": "carol"}
WHAT = {"type": 4, "name": "what", "description": "What", "autocomplete": True}
PLAIN = {"type": 3, "name": "plain", "description": "Plain"}
GO = {"name": "go", "description": "Go", "options": [WHAT, PLAIN]}
CALLS: dict[str, list[dict[str, Any]]] = {
    "guilds": [
        {**BASE, "action": "add_role", "name": "R", "permissions": 0, "position": 1},
        {**BASE, "action": "move_role", "role": "Holder", "position": 1},
        {**BASE, "action": "populate", "count": 1},
        {"guild": "Cool Holders Club", "action": "add_bot", "position": 1, "permissions": "8"},
        {"guild": "New", "action": "create", "owner": "ada", "admins": ["bob"], "members": ["carol"]},
    ],
    "members": [{**BASE, "user": "carol", "action": "add_role", "role": "Holder", "by": "bob"}],
    "interactions": [
        {**PERSON, "kind": "command", "name": "go", "options": [{"name": "what", "value": 1}], "locale": "de"},
        {**PERSON, "kind": "autocomplete", "name": "go", "options": {"what": 1}, "focused": "what"},
        {"user": "carol", "context": "bot_dm", "kind": "command", "name": "go", "options": [{"name": "what"}]},
    ],
    "gateway": [
        {"action": "pause", "seconds": 0},
        {"action": "close", "code": 4000},
        {"action": "send", "event": "X", "payload": {}, "times": 1},
        {"action": "send", "payload": {"op": 11, "d": None}, "times": 1},
    ],
    "application": [
        {"shards": 1, "max_concurrency": 1, "guilds_per_shard": 10, "identifies_left": 1000},
        {"members_intent": "on", "user_install": True, "redirect_uris": ["https://example.org/back"]},
    ],
    "faults": [
        {"target": "magiceden", "kind": "empty", "seconds": 1},
        {"target": "discord", "kind": "answer", "path": "/x", "status": 500, "body": "x", "times": 1, "seconds": 1},
        {"target": "discord", "kind": "latency", "path": "/x", "ms": 1, "seconds": 1},
    ],
}  # fmt: skip


def altered(call: dict[str, Any]) -> Iterator[str]:
    """Yield the call's text with each of its values in turn replaced by each odd one."""
    for name in call:
        rest = json.dumps({key: value for key, value in call.items() if key != name})[1:-1]
        for odd in ODD:
            yield "{" + rest + (", " if rest else "") + f'"{name}": {odd}' + "}"


@pytest.mark.parametrize("path", CALLS)
async def test_an_odd_value_is_refused_in_a_sentence(discord: Outside, path: str):
    await discord.bot("POST", f"/applications/{discord.settings['DISCORD_CLIENT_ID']}/commands", GO)
    refused = 0
    for call in CALLS[path]:
        for body in altered(call):
            answer = await discord.http.post(f"/control/{path}", content=body)
            assert answer.status_code in (200, 400, 404, 409, 504), body[:200]
            assert answer.status_code == 200 or answer.json()["message"], body[:200]
            refused += answer.status_code != 200
    assert refused


@pytest.mark.parametrize(
    "body", [b"{", b"\xff{}", b"[" * 100_000, b'{"seconds": NaN}', b'{"x": -1e400}', b'{"action": "\\ud800"}']
)
async def test_what_is_no_json_is_said_to_be_none(discord: Outside, body: bytes):
    answer = await discord.http.post("/control/gateway", content=body)
    assert (answer.status_code, answer.json()) == (400, {"message": "The body is not JSON."})


@pytest.mark.parametrize("since", ["²", "9" * 4500, "-1", "x"])
async def test_requests_are_asked_for_from_a_number(discord: Outside, since: str):
    assert (await discord.http.get("/control/requests", params={"since": since})).status_code == 400


@pytest.mark.parametrize("position", ["x", 0, -1])
async def test_a_refused_role_is_not_made(discord: Outside, position: Any):
    body = {**BASE, "action": "add_role", "name": "Half", "position": position}
    assert (await discord.http.post("/control/guilds", json=body)).status_code == 400
    assert "Half" not in [role["name"] for role in (await discord.guild("1170000000000002000"))["roles"]]


@pytest.mark.parametrize(
    ("method", "path", "status", "allow", "said"),
    [
        ("GET", "nothing", 404, None, "There is no control call /control/nothing."),
        ("POST", "reset/", 404, None, "There is no control call /control/reset/."),
        ("PUT", "nowhere/accounts/0x1", 404, None, "There is no control call /control/nowhere/accounts/0x1."),
        ("GET", "reset", 405, "POST", "This control call takes POST."),
        ("PUT", "faults", 405, "DELETE,POST", "This control call takes DELETE or POST."),
        ("DELETE", "world", 405, "GET,HEAD", "This control call takes GET."),
    ],
)
async def test_a_call_that_is_not_there_is_refused_in_json(
    discord: Outside, method: str, path: str, status: int, allow: str | None, said: str
):
    answer = await discord.http.request(method, f"/control/{path}")
    assert (answer.status_code, answer.headers.get("Allow"), answer.json()) == (status, allow, {"message": said})


async def test_other_peoples_services_refuse_in_their_own_manner(discord: Outside):
    assert (await discord.http.get("/opensea/nothing/here")).text == "404: Not Found"


@pytest.mark.parametrize(
    ("path", "body", "most"),
    [
        ("guilds", {**BASE, "action": "add_role", "name": "r"}, 100),
        ("guilds", {**BASE, "action": "edit_role", "role": "Holder", "name": "r"}, 100),
        ("guilds", {"guild": "Quiet Corner", "action": "edit_guild", "name": "g"}, 100),
        ("guilds", {"action": "create", "guild": "g", "owner": "ada"}, 100),
        ("members", {**PERSON, "action": "rename", "name": "u"}, 32),
        ("members", {**PERSON, "action": "rename_nick", "name": "n"}, 32),
        ("people", {"username": "u"}, 32),
    ],
)
async def test_a_name_that_discord_refuses_is_refused(discord: Outside, path: str, body: dict[str, Any], most: int):
    name, value = next((name, value) for name, value in body.items() if len(value) == 1)
    for length, status in ((most + 1, 400), (most, 200)):
        answer = await discord.http.post(f"/control/{path}", json={**body, name: value * length})
        assert answer.status_code == status, answer.text


@pytest.mark.parametrize(
    "typed", [{}, {"options": {"plain": "x"}}, {"options": {"what": 1}, "focused": "plain"}, {"options": []}]
)
async def test_suggestions_are_asked_for_only_where_the_command_has_some(discord: Outside, typed: dict[str, Any]):
    await discord.bot("POST", f"/applications/{discord.settings['DISCORD_CLIENT_ID']}/commands", GO)
    body = {**PERSON, "kind": "autocomplete", "name": "go", **typed}
    answer = await discord.http.post("/control/interactions", json=body)
    assert (answer.status_code, "no suggestions" in answer.json()["message"]) == (400, True)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("members", {"guild": "Quiet Corner", "user": "HoldfastBot", "action": "join"}),
        ("guilds", {**BASE, "action": "edit_role", "role": "@everyone", "name": "all"}),
        ("guilds", {**BASE, "action": "edit_guild", "owner": "HoldfastBot"}),
        ("guilds", {"action": "create", "guild": "Bots", "owner": "HoldfastBot"}),
    ],
    ids=["our bot joins by an invite", "everyone keeps its name", "a bot owns nothing", "a bot makes nothing"],
)
async def test_what_discord_does_not_do_is_refused(discord: Outside, path: str, body: dict[str, Any]):
    before = await discord.world()
    assert (await discord.http.post(f"/control/{path}", json=body)).status_code == 400
    assert await discord.world() == before


async def test_a_request_for_the_whole_server_is_answered_like_one_for_nothing(discord: Outside):
    reader, writer = await asyncio.open_connection("127.0.0.1", discord.sandbox.port)
    writer.write(b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert (await reader.readline()).startswith(b"HTTP/1.1 404 ")
    writer.close()
