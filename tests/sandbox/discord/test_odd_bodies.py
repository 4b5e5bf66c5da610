"""Whatever a body contains, the sandbox's Discord answers with a refusal and never with an error of its own."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from sandbox.discord.world import shapes
from tests.sandbox.conftest import BASE, CALLBACK, HOLDER, Outside, role_of, some

APP, CAROL, GENERAL = "1160000000000000001", "1150000000000000303", str(int(BASE) + 100)
ODD = (None, True, -1, 1.5, 2**70, "", "x" * 7000, "\x00", [], [None], [[]], {}, {"type": []}, {"": None})
_ROW = {"type": 1, "components": [{"type": 2, "style": 1, "label": "Go", "custom_id": "go", "emoji": {"name": "✅"}}]}
_SELECT = {"type": 3, "custom_id": "menu", "options": [{"label": "A", "value": "a", "default": True}]}
_EMBED = {
    "title": "T", "color": 1, "timestamp": "2026-01-01T00:00:00Z", "url": "https://example.org",
    "fields": [{"name": "n", "value": "v"}], "author": {"name": "a"}, "image": {"url": "https://example.org/a.png"},
}  # fmt: skip
_OPTION = {
    "type": 3, "name": "word", "description": "A word", "choices": [{"name": "A", "value": "a"}],
    "name_localizations": {"de": "wort"},
}  # fmt: skip
_COMMAND = {
    "name": "go", "description": "Go", "type": 1, "contexts": [0], "default_member_permissions": "8",
    "options": [{"type": 1, "name": "sub", "description": "A part", "options": [_OPTION]}],
}  # fmt: skip
BODIES: dict[tuple[str, str], Any] = {
    ("POST", f"/channels/{GENERAL}/messages"): {
        "content": "Hi", "embeds": [_EMBED], "components": [_ROW, {"type": 1, "components": [_SELECT]}], "flags": 0,
        "allowed_mentions": {"parse": [], "users": [CAROL]}, "nonce": "n", "enforce_nonce": True,
    },
    ("POST", f"/channels/{GENERAL}/messages?"): {
        "flags": 1 << 15,
        "components": [
            {"type": 17, "components": [{"type": 10, "content": "x"}, {"type": 14, "spacing": 1}, _ROW]},
            {"type": 9, "components": [{"type": 10, "content": "x"}], "accessory": _ROW["components"][0]},
        ],
    },
    ("POST", f"/guilds/{BASE}/channels"): {
        "name": "new", "type": 0, "topic": "T", "position": 1, "rate_limit_per_user": 1,
        "permission_overwrites": [{"id": CAROL, "type": 1, "allow": "1024", "deny": "0"}],
    },
    ("PATCH", f"/channels/{GENERAL}"): {"name": "general", "topic": "T", "parent_id": None},
    ("PUT", f"/channels/{GENERAL}/permissions/{CAROL}"): {"type": 1, "allow": "1024", "deny": "0"},
    ("POST", f"/applications/{APP}/commands"): _COMMAND,
    ("PUT", f"/applications/{APP}/commands"): [_COMMAND],
    ("POST", f"/guilds/{BASE}/roles"): {"name": "New", "permissions": "0", "colors": {"primary_color": 1}},
    ("PATCH", f"/guilds/{BASE}/roles"): [{"id": role_of(BASE, HOLDER), "position": 1}],
    ("PATCH", f"/guilds/{BASE}/roles/{role_of(BASE, HOLDER)}"): {"name": "Holder", "hoist": True, "color": 1},
    ("PATCH", f"/guilds/{BASE}/members/{CAROL}"): {"roles": [role_of(BASE, HOLDER)]},
}  # fmt: skip


def altered(value: Any, places: Iterator[int] | None = None) -> Iterator[Any]:
    """Yield the value with each of its parts in turn replaced by odd ones."""
    places = places or count()
    yield from some(ODD, next(places))
    if isinstance(value, dict):
        for name, inner in value.items():
            for other in altered(inner, places):
                yield {**value, name: other}
    if isinstance(value, list):
        for at, inner in enumerate(value):
            for other in altered(inner, places):
                yield [*value[:at], other, *value[at + 1 :]]


@pytest.mark.parametrize("call", BODIES, ids=lambda call: f"{call[0]} {call[1]}")
async def test_an_odd_body_is_no_fault_of_ours(discord: Outside, call: tuple[str, str]):
    method, path = call
    refused = 0
    for body in altered(BODIES[call]):
        discord.sandbox.discord.limits.clear()
        answer = await discord.bot(method, path, body)
        assert answer.status_code < 500, body
        refused += answer.status_code >= 400
    assert refused


async def test_a_fault_of_our_own_stands_in_the_log_of_requests(discord: Outside, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(shapes, "me")
    before = (await discord.http.get("/control/requests")).json()["next"]
    headers = {"Authorization": f"Bot {discord.settings['DISCORD_BOT_TOKEN']}"}
    assert (await discord.http.get("/discord/api/v10/users/@me", headers=headers)).status_code == 500
    seen = (await discord.http.get("/control/requests", params={"since": before})).json()["requests"]
    assert [request["status"] for request in seen] == [500]


_NAMED = b'Content-Disposition: form-data; name="payload_json"\r\n'
HEADS = (
    b"no header",
    _NAMED + b"X: \x00",
    _NAMED + b"X: " + b"x" * 20_000,
    _NAMED + b"Content-Transfer-Encoding: none",
)


@pytest.mark.parametrize(
    ("content", "kind", "code"),
    [
        (b"\xff", "application/json", 50109),
        (b"[" * 100_000, "application/json", 50109),
        (b'{"color": ' + b"9" * 5000 + b"}", "application/json", 50109),
        (b'{"color": NaN}', "application/json", 50109),
        (b'{"name": "\\ud800"}', "application/json", 50109),
        (b"x", "multipart/form-data", 50035),
        (b"x", "multipart/form-data; boundary=a", 50035),
        (b"\xff", "application/x-www-form-urlencoded", 50035),
        *((b"--a\r\n" + head + b"\r\n\r\n{}\r\n--a--\r\n", "multipart/form-data; boundary=a", 50035) for head in HEADS),
        (b"name=\\ud800", "application/x-www-form-urlencoded; charset=unicode_escape", 50035),
        (b"payload_json=\\ud800", "application/x-www-form-urlencoded; charset=unicode_escape", 50035),
    ],
)
async def test_a_body_that_cannot_be_read_is_refused(discord: Outside, content: bytes, kind: str, code: int):
    headers = {"Content-Type": kind}
    answer = await discord.bot("POST", f"/guilds/{BASE}/roles", content=content, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, code)


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
async def test_a_time_before_the_first_year_or_after_the_last_is_refused(discord: Outside, moment: str):
    body = {"embeds": [{"title": "T", "timestamp": moment}]}
    answer = await discord.bot("POST", f"/channels/{GENERAL}/messages", body)
    assert answer.status_code == 400, answer.text
    assert "timestamp" in answer.json()["errors"]["embeds"]["0"]


@pytest.mark.parametrize("limit", ["9" * 4500, "²", "١", "", "1.0"])
async def test_a_limit_is_a_number_in_plain_digits(discord: Outside, limit: str):
    answer = await discord.bot("GET", f"/guilds/{BASE}/members", params={"limit": limit})
    assert (answer.status_code, answer.json()["code"]) == (400, 50035)


async def test_a_token_call_whose_form_cannot_be_read_is_refused(discord: Outside):
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await discord.http.post("/discord/api/v10/oauth2/token", content=b"\xff", headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


async def test_an_invite_for_odd_permissions_is_a_page(discord: Outside):
    for permissions in ("²", "9" * 4500):
        invite = {"client_id": APP, "scope": "bot", "guild_id": BASE, "as": "ada", "permissions": permissions}
        assert (await discord.http.get("/discord/oauth2/authorize", params=invite)).status_code == 400


@pytest.mark.parametrize("redirect", ["http://[::1", "http://[::1/api/auth/discord/callback", "//", "\x00"])
async def test_a_sign_in_that_leads_nowhere_is_a_page(discord: Outside, redirect: str):
    await discord.control("application", redirect_uris=[])
    assert (await discord.authorize("ada", redirect_uri=redirect)).status_code == 400
    registered = await discord.http.post("/control/application", json={"redirect_uris": ["http://[::1"]})
    assert registered.status_code == 400, registered.text


@pytest.mark.parametrize("redirect", [f"{CALLBACK}\n", f"\t{CALLBACK}", f"{CALLBACK}?a=\r\nX: y", f"{CALLBACK}?\x01"])
async def test_a_sign_in_that_leads_to_more_than_an_address_is_a_page(discord: Outside, redirect: str):
    await discord.control("application", redirect_uris=[])
    assert (await discord.authorize("ada", redirect_uri=redirect)).status_code == 400
    registered = await discord.http.post("/control/application", json={"redirect_uris": [redirect]})
    assert registered.status_code == 400, registered.text


@pytest.mark.parametrize("kind", ["multipart/form-data", "application/x-www-form-urlencoded; charset=none"])
@pytest.mark.parametrize("path", ["act", "complete", "say", "dismiss", "do/reset"])
async def test_a_form_of_the_console_that_cannot_be_read_is_refused(discord: Outside, path: str, kind: str):
    answer = await discord.http.post(f"/console/{path}", content=b"typed=x", headers={"Content-Type": kind})
    assert answer.status_code == 400, answer.text


@pytest.mark.parametrize("back", ["http://[::1", "//[", "\x00"])
async def test_a_form_of_the_console_that_was_nowhere_leads_to_the_first_place(discord: Outside, back: str):
    answer = await discord.http.post("/console/dismiss", data={"back": back, "message": "1"})
    assert answer.status_code == 303, answer.text
    assert answer.headers["location"].startswith("/console?as=ada")
