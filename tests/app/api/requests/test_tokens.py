"""API tokens: one server, the token's scopes, its creator's rights, and no access after it was revoked."""

import uuid
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from sqlmodel import col, delete, select, update

from app.api import api
from app.api.requests.scopes import OPEN
from gateways import gateways
from models import Access, ApiToken, Breaker, Grant, Rule, Server, Truce, now, transaction
from services.accounts.developers import api_tokens
from services.core.actors import Actor
from services.core.errors import FieldRefused, ServerNotFound
from settings import settings
from tests.app.api.browsers import Browser
from tests.app.api.server.test_rights import AT, CALLS, RULES, Call, change, make, names_of, refused
from tests.jobs.town import STRANGER, Town, a_town

CLOSED = {
    "GET /api/auth/user", "GET /api/auth/discord", "GET /api/auth/discord/connect", "GET /api/auth/discord/callback",
    "GET /api/auth/logout", "POST /api/auth/logout",
    "GET /api/me/sessions", "DELETE /api/me/sessions", "DELETE /api/me/sessions/{session}", "GET /api/me/export",
    "DELETE /api/me", "GET /api/me/forget", "GET /api/me/servers", "GET /api/status", "PUT /api/me/servers/{server_id}",
    "GET /api/wallet-challenge", "POST /api/verify-wallet", "GET /api/wallet-verifications",
    "DELETE /api/wallet-verifications/{wallet_id}",
    "POST /api/me/handover", "DELETE /api/me/handover", "POST /api/me/handover/look", "POST /api/me/handover/take",
    "GET /api/analytics", "GET /api/analytics/history", "POST /api/servers", "POST /api/admin/sync-servers",
    "GET /api/discord/invite", "GET /api/discord/invite-url", "GET /api/discord/servers",
    f"GET {AT}/tokens", f"POST {AT}/tokens", f"DELETE {AT}/tokens", f"DELETE {AT}/tokens/{{token_id}}",
    f"GET {AT}/webhook", f"PUT {AT}/webhook", f"DELETE {AT}/webhook", f"POST {AT}/webhook/test",
}  # fmt: skip
"""Calls about a person, about no server or several, about the tokens themselves, and about the webhook."""
EVERYTHING = ["read", "rules", "members"]


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    """A town that ada owns; bob administers it by the role Admin, and carol is a member with a proved wallet."""
    async with a_town(sandbox_url, "ada", "bob", "carol") as made:
        await change(made, "bob", "add_role", role="Admin")
        await made.see()
        await made.prove("carol")
        yield made


async def signed_in(new_browser: Callable[[], Browser], town: Town, who: str) -> Browser:
    browser = new_browser()
    await browser.sign_in(town.people[who]["username"])
    return browser


async def made(browser: Browser, town: Town, **fields: Any) -> dict[str, Any]:
    body = {"name": "ci", "scopes": EVERYTHING, **fields}
    answer = await browser.client.post(f"/api/servers/{town.server_id}/tokens", json=body)
    assert answer.status_code == 201, answer.text
    assert answer.headers["cache-control"] == "no-store"
    return answer.json()


def program(new_browser: Callable[[], Browser], token: str) -> Browser:
    """A program with a token and no cookies."""
    browser = new_browser()
    browser.client.headers["Authorization"] = f"Bearer {token}"
    return browser


async def rules(browser: Browser, town: Town) -> httpx.Response:
    return await browser.client.get(f"{RULES}?serverId={town.server_id}")


def test_every_call_names_its_scopes_or_is_closed_to_tokens() -> None:
    described = {
        f"{method.upper()} {path}": operation
        for path, methods in api.openapi()["paths"].items()
        for method, operation in methods.items()
        if path.startswith("/api/")
    }
    assert described.keys() - OPEN.keys() == CLOSED
    assert OPEN.keys() <= described.keys()
    assert all(needed and needed <= set(api_tokens.SCOPES) for needed in OPEN.values())


async def test_a_token_of_another_server_finds_nothing_even_if_its_creator_runs_both(
    new_browser: Callable[[], Browser], town: Town
) -> None:
    names = await names_of(town)
    owner = await signed_in(new_browser, town, "ada")
    token = (await made(owner, town))["token"]
    async with transaction() as db:
        other = Server(discord_id=str(uuid.uuid4().int)[:18], name="Another")
        db.add(other)
        await db.flush()
        db.add(Access(server_id=other.id or 0, discord_id=town.people["ada"]["id"], owner=True))
        # The token's use counts as just noted: no call changes even that.
        used = now() + timedelta(hours=1)
        await db.exec(update(ApiToken).where(col(ApiToken.name) == "ci").values(server_id=other.id, used_at=used))
    theirs = program(new_browser, token)
    not_about_it = {"POST /api/servers", "GET /api/analytics/history"}
    await refused(theirs, names, [call for call in CALLS if call[0] not in not_about_it])
    for call in CALLS:
        if call[0] in not_about_it:
            assert (await make(theirs, call, names)).status_code == 403
    # The bot is not in the server and Discord does not list it, so the token's creator does not run it.
    assert (await theirs.client.get("/api/servers")).status_code == 404


NOT_OF_A_SERVER = ("/api/me/", "/api/wallet-verifications/", "/api/collection/")
"""The calls whose id names a person's own data or a contract."""


async def test_every_described_call_with_an_id_is_404_for_another_servers_token(
    new_browser: Callable[[], Browser], town: Town
) -> None:
    rule_id = await town.rule("Holder")
    owner = await signed_in(new_browser, town, "ada")
    token = await made(owner, town)
    about = {"serverId": town.server_id, "id": rule_id}
    reach = await owner.client.post(f"{RULES}/reach", json=about)
    assert reach.status_code == 202, reach.text
    known = {
        "server_id": town.server_id, "rule_id": rule_id, "reach_id": reach.json()["id"], "token_id": token["id"],
        "discord_id": town.people["carol"]["id"], "role_id": await town.role("Holder"), "name": "a" * 64,
        "batch": str(uuid.uuid4()), "migration_id": 1,
    }  # fmt: skip
    async with transaction() as db:
        other = Server(discord_id=str(uuid.uuid4().int)[:18], name="Another")
        db.add(other)
        await db.flush()
        db.add(Access(server_id=other.id or 0, discord_id=town.people["ada"]["id"], owner=True))
        await db.exec(update(ApiToken).where(col(ApiToken.id) == token["id"]).values(server_id=other.id))
    theirs = program(new_browser, token["token"])
    asked, odd = 0, dict[str, int]()
    for path, methods in api.openapi()["paths"].items():
        if "{" not in path or path.startswith(NOT_OF_A_SERVER):
            continue
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {})
            sent: dict[str, Any] = (
                {"json": content["application/json"]["example"]} if "application/json" in content else {}
            )
            query = {one["name"]: 1 for one in operation.get("parameters", []) if one["in"] == "query"}
            for wanted in (query, {}):
                answer = await theirs.client.request(method, path.format_map(known), params=wanted, **sent)
                asked += 1
                if answer.status_code != 404:
                    odd[f"{method} {path}"] = answer.status_code
    assert (odd, asked > 80) == ({}, True)


async def test_a_token_makes_the_calls_of_its_scopes_and_no_other(
    new_browser: Callable[[], Browser], town: Town
) -> None:
    names = await names_of(town)
    owner = await signed_in(new_browser, town, "ada")
    about = [call for call in CALLS if call[0] in OPEN]
    bare = {scope: program(new_browser, (await made(owner, town, scopes=[scope]))["token"]) for scope in EVERYTHING}

    async def forbidden(browser: Browser, call: Call) -> None:
        answer = await make(browser, call, names)
        assert answer.status_code == 403, f"{call[0]}: {answer.status_code} {answer.text}"

    for call in about:
        for scope, browser in bare.items():
            if OPEN[call[0]] - {scope}:
                await forbidden(browser, call)
    full = program(new_browser, (await made(owner, town))["token"])
    for call in CALLS:
        if call[0] in CLOSED:
            await forbidden(full, call)
    for path in ("/api/me/sessions", "/api/auth/user", "/api/me/export"):
        assert (await full.client.get(path)).status_code == 403
    for call in about:
        answer = await make(full, call, names)
        assert answer.is_success, f"{call[0]}: {answer.status_code} {answer.text}"
    assert [one["internalId"] for one in (await full.client.get("/api/servers")).json()] == [town.server_id]


async def test_the_addresses_of_lists_need_the_scope_for_rules_too(
    new_browser: Callable[[], Browser], town: Town
) -> None:
    owner = await signed_in(new_browser, town, "ada")
    listed = {
        "ruleName": "Friends", "serverId": town.server_id, "roleId": await town.role("Holder"),
        "verificationType": "address_list", "addresses": [STRANGER],
    }  # fmt: skip
    assert (await owner.client.post(RULES, json=listed)).status_code == 201
    for path, enough in (("rules.json", ["read", "rules"]), ("export", EVERYTHING)):
        for scopes in (["read"], ["rules"], ["read", "members"], ["read", "rules"], EVERYTHING):
            caller = program(new_browser, (await made(owner, town, scopes=scopes))["token"])
            answer = await caller.client.get(f"/api/servers/{town.server_id}/{path}")
            allowed = set(enough) <= set(scopes)
            assert (answer.status_code, STRANGER in answer.text) == (200 if allowed else 403, allowed), (path, scopes)


async def test_a_token_is_shown_once_and_the_log_names_it(new_browser: Callable[[], Browser], town: Town) -> None:
    owner = await signed_in(new_browser, town, "ada")
    token = await made(owner, town, name=" nightly  build ", scopes=["members", "rules", "rules"])
    assert (token["name"], token["scopes"], token["state"]) == ("nightly build", ["rules", "members"], "active")
    caller = program(new_browser, token["token"])
    assert (await caller.client.post(f"/api/servers/{town.server_id}/recheck")).status_code == 202
    [listed] = (await owner.client.get(f"/api/servers/{town.server_id}/tokens")).json()
    assert listed["usedAt"] is not None
    assert token["token"].startswith(listed["prefix"])
    assert len(listed["prefix"]) < 12
    log = await owner.client.get(f"/api/servers/{town.server_id}/events")
    texts = {line["kind"]: (line["text"], line["actorName"]) for line in log.json()}
    name = texts["token.created"][1]
    assert texts["token.created"][0] == f"{name} created the API token “nightly build” (rules, members)."
    assert texts["recheck.asked"][0].startswith(f"The token “nightly build” of {name} had everybody checked again")
    assert texts["recheck.asked"][1] == f"the token “nightly build” of {name}"
    async with transaction() as db:
        row = (await db.exec(select(ApiToken))).one()
    for shown in (listed, log.text, row.model_dump()):
        assert token["token"] not in str(shown)


async def test_a_token_stops_at_once_when_it_is_revoked_or_ends_or_its_creator_or_server_is_gone(
    new_browser: Callable[[], Browser], town: Town
) -> None:
    owner, admin = [await signed_in(new_browser, town, who) for who in ("ada", "bob")]
    at = f"/api/servers/{town.server_id}/tokens"

    async def fresh() -> tuple[int, Browser]:
        token = await made(admin, town)
        caller = program(new_browser, token["token"])
        assert (await rules(caller, town)).status_code == 200
        return token["id"], caller

    token_id, caller = await fresh()
    assert (await owner.client.delete(f"{at}/{token_id}")).json() == {"success": True, "revoked": 1}
    assert (await rules(caller, town)).status_code == 401
    assert (await owner.client.delete(f"{at}/{token_id}")).status_code == 404
    _, caller = await fresh()
    assert (await owner.client.delete(at)).json()["revoked"] == 1
    assert (await rules(caller, town)).status_code == 401
    _, caller = await fresh()
    async with transaction() as db:
        await db.exec(update(ApiToken).values(expires_at=now() - timedelta(seconds=1)))
    assert (await rules(caller, town)).status_code == 401
    assert [one["state"] for one in (await owner.client.get(at)).json()] == ["expired"]
    _, caller = await fresh()
    await change(town, "bob", "remove_role", role="Admin")
    assert (await rules(caller, town)).status_code == 404
    await town.see()
    assert [one["state"] for one in (await owner.client.get(at)).json()] == ["stopped", "expired"]
    async with transaction() as db:
        await db.exec(delete(Server).where(col(Server.id) == town.server_id))
        assert (await db.exec(select(ApiToken))).all() == []
    assert (await rules(caller, town)).status_code == 401


async def test_a_misspelt_id_revokes_no_token(new_browser: Callable[[], Browser], town: Town) -> None:
    ada = await signed_in(new_browser, town, "ada")
    first, _ = await made(ada, town), await made(ada, town)
    at = f"/api/servers/{town.server_id}/tokens"
    for query in (f"tokenId={first['id']}", f"ID={first['id']}", f"id={first['id']}&name=ci"):
        refused = await ada.client.delete(f"{at}?{query}")
        assert refused.status_code == 400, query
        assert query.rpartition("&")[2].partition("=")[0] in refused.json()["message"]
    assert (await ada.client.delete(f"{at}?id=")).status_code == 404
    assert len((await ada.client.get(at)).json()) == 2
    assert (await ada.client.delete(f"{at}?id={first['id']}")).json()["revoked"] == 1
    assert (await ada.client.delete(at)).json()["revoked"] == 1


async def test_calls_that_name_no_server_need_a_creator_who_runs_the_tokens_server(
    new_browser: Callable[[], Browser], town: Town
) -> None:
    admin = await signed_in(new_browser, town, "bob")
    caller = program(new_browser, (await made(admin, town))["token"])
    traits = f"/api/collection/{town.contract}/traits"
    asked: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("POST", "/api/collection/parse", {"json": {"input": town.contract, "blockchain": "base"}}),
        ("GET", traits, {"params": {"blockchain": "base"}}),
        ("GET", f"{traits}/Fur", {"params": {"blockchain": "base"}}),
        ("POST", f"{RULES}/try-call", {
            "json": {
                "chain": "base", "contract": town.contract, "function": "balanceOf(address) view returns (uint256)",
                "wallet": STRANGER,
            },
        }),
    )  # fmt: skip

    async def refusals() -> list[bool]:
        every = [await caller.client.request(method, path, **sent) for method, path, sent in asked]
        return [answer.status_code == 404 and answer.json()["message"] == str(ServerNotFound()) for answer in every]

    assert await refusals() == [False] * len(asked)
    await change(town, "bob", "remove_role", role="Admin")
    # bob runs another server now, which changes nothing.
    await town.call("guilds", action="create", guild=f"{town.name} two", owner=town.people["bob"]["id"], members=[])
    assert await refusals() == [True] * len(asked)


async def test_a_token_and_a_session_do_not_mix(new_browser: Callable[[], Browser], town: Town) -> None:
    owner = await signed_in(new_browser, town, "ada")
    token = (await made(owner, town))["token"]
    caller = program(new_browser, token)
    # No browser sends the token's header unasked, so the origin of the request does not matter.
    assert (
        await caller.client.post(f"/api/servers/{town.server_id}/recheck", headers={"Origin": "https://evil.example"})
    ).status_code == 202
    for headers in (
        {"Cookie": f"hf_session={owner.session_id}"},
        {"x-session-id": str(owner.session_id)},
        {"Authorization": "Bearer hf_" + "a" * 43},
        {"Authorization": "Bearer hf_"},
        {"Authorization": f"Basic {token}"},
    ):
        answer = await caller.client.get("/api/servers", headers=headers)
        assert (answer.status_code, answer.json()) == (401, {"message": "Unauthorized"}), headers
    # A header that a proxy adds for itself does not affect a session.
    assert (await owner.client.get("/api/servers", headers={"Authorization": "Basic eDp5"})).status_code == 200


async def test_a_token_has_limits_of_its_own(
    new_browser: Callable[[], Browser], town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = await signed_in(new_browser, town, "ada")
    first, second = [program(new_browser, (await made(owner, town))["token"]) for _ in range(2)]
    monkeypatch.setenv("LIMIT_RECHECKS", "2")
    settings.cache_clear()
    path = f"/api/servers/{town.server_id}/recheck"
    assert [(await first.client.post(path)).status_code for _ in range(3)] == [202, 202, 429]
    assert (await second.client.post(path)).status_code == 202


async def test_a_name_may_have_the_joiners_that_emoji_and_scripts_need(
    town: Town, new_browser: Callable[[], Browser]
) -> None:
    owner = await signed_in(new_browser, town, "ada")
    for name in ("👩\u200d💻 script", "می\u200cخواهم"):
        assert (await made(owner, town, name=name))["name"] == name


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": " "}, "The name needs"),
        ({"name": "x" * 51}, "The name needs"),
        ({"name": "a\u202eb"}, "The name needs"),
        ({"scopes": []}, "Choose at least one of: read, rules, members."),
        ({"scopes": ["read", "admin"]}, "Choose at least one of"),
        ({"end": datetime(2020, 1, 1, tzinfo=UTC)}, "in the future"),
        ({"end": datetime(2999, 1, 1, tzinfo=UTC)}, "within a year"),
    ],
)
async def test_a_token_that_makes_no_sense_is_not_created(product: None, fields: dict[str, Any], field: str) -> None:
    body = {"name": "ci", "scopes": ["read"], "end": None, **fields}
    async with transaction() as db:
        with pytest.raises(FieldRefused, match=field):
            await api_tokens.create(
                db, gateways(), Actor(1, "1", "ada"), 1, body["name"], body["scopes"], body["end"]
            )  # fmt: skip


async def test_a_server_has_only_so_many_tokens(
    new_browser: Callable[[], Browser], town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_tokens, "MOST", 2)
    owner = await signed_in(new_browser, town, "ada")
    first = await made(owner, town)
    await made(owner, town)
    body = {"name": "third", "scopes": ["read"]}
    answer = await owner.client.post(f"/api/servers/{town.server_id}/tokens", json=body)
    assert (answer.status_code, answer.json()["message"][:35]) == (409, "A server has at most 2 API tokens. ")
    await owner.client.delete(f"/api/servers/{town.server_id}/tokens/{first['id']}")
    assert (await owner.client.post(f"/api/servers/{town.server_id}/tokens", json=body)).status_code == 201


async def test_a_server_keeps_only_so_many_expired_tokens(
    new_browser: Callable[[], Browser], town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_tokens, "MOST", 2)
    owner = await signed_in(new_browser, town, "ada")
    names = list[str]()
    for number in range(5):
        async with transaction() as db:
            living = col(ApiToken.expires_at) > now()
            await db.exec(update(ApiToken).where(living).values(expires_at=now() - timedelta(seconds=1)))
        names.append((await made(owner, town, name=f"token {number}"))["name"])
    listed = (await owner.client.get(f"/api/servers/{town.server_id}/tokens")).json()
    assert [(one["name"], one["state"]) for one in listed] == [
        (names[4], "active"), (names[3], "expired"), (names[2], "expired"),
    ]  # fmt: skip


async def test_a_token_without_members_reads_no_member_by_name(new_browser: Callable[[], Browser], town: Town) -> None:
    owner, carol = await signed_in(new_browser, town, "ada"), town.people["carol"]
    rule_id, until = await town.rule("Holder"), now() + timedelta(hours=1)
    async with transaction() as db:
        rule = await db.get_one(Rule, rule_id)
        facts = {"server_id": town.server_id, "role_id": rule.role_id, "discord_id": carol["id"]}
        db.add(Grant(**facts, rule_ids=[rule_id], state="held", held_back_at=now()))
        db.add(Truce(**facts, since=now(), until=until))
        db.add(Breaker(server_id=town.server_id, role_id=rule.role_id, would_lose=7, holders=9))
    paths = [
        call.removeprefix("GET ").format(server_id=town.server_id)
        for call, scopes in OPEN.items()
        if call.startswith("GET ") and scopes == frozenset({"read"}) and call.count("{") == call.count("{server_id}")
    ]
    bare = program(new_browser, (await made(owner, town, scopes=["read"]))["token"])
    full = program(new_browser, (await made(owner, town))["token"])
    assert f"/api/servers/{town.server_id}/health" in paths
    for path in paths:
        answer = await bare.client.get(path, params={"serverId": town.server_id})
        assert answer.status_code in {200, 404}, path
        assert carol["id"] not in answer.text, path
        assert carol["username"] not in answer.text, path
    for path in ("breaker", "health"):
        assert carol["id"] in (await full.client.get(f"/api/servers/{town.server_id}/{path}")).text, path
