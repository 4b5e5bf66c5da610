"""The product's main task through its API alone: a server, its rules, a wallet; and what others cannot do there."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from sqlmodel import col, update

from gateways import gateways
from gateways.discord.own_guilds import OwnGuilds
from models import Server, transaction
from services.collections import standards
from settings import settings
from tests.app.api.browsers import Browser, seeded_world


@pytest.fixture
async def world(discord: None) -> dict[str, Any]:
    """The world that the sandbox begins with."""
    return await seeded_world(settings().sandbox_url)


def builders(world: dict[str, Any]) -> dict[str, Any]:
    return next(guild for guild in world["guilds"] if guild["name"] == "Base Builders")


def role_id(guild: dict[str, Any], name: str) -> str:
    return next(role["id"] for role in guild["roles"] if role["name"] == name)


def contract(world: dict[str, Any]) -> str:
    return world["chains"]["base"]["collections"][0]["contract"]


def wallet(world: dict[str, Any], username: str) -> str:
    return next(user["wallets"]["evm"] for user in world["users"] if user["username"] == username)


async def with_server(browser: Browser, guild: dict[str, Any]) -> int:
    """Add ada's server through the form, with the bot in it, and return its internal id."""
    payload = {"discordServerId": guild["id"], "serverName": guild["name"], "serverIcon": "", "description": ""}
    added = await browser.client.post("/api/servers", json=payload)
    assert added.status_code == 201, added.text
    # The bot writes this when it sees that it is in the guild.
    async with transaction() as db:
        await db.exec(update(Server).where(col(Server.discord_id) == guild["id"]).values(bot_invited=True))
    return added.json()["id"]


async def known(world: dict[str, Any]) -> None:
    """Store what a node says of the contract of `rule`, as an earlier rule would have: then a rule asks no node."""
    async with transaction() as db:
        place = "base", contract(world).lower()
        await standards.remember(db, {place: "ERC721"}, {place: world["chains"]["base"]["collections"][0]["name"]})


def rule(world: dict[str, Any], server_id: int, role: str = "Holder") -> dict[str, Any]:
    return {
        "ruleName": "Builders", "contractAddress": contract(world), "blockchain": "base",
        "verificationType": "basic", "minTokens": 1, "roleId": role_id(builders(world), role),
        "roleColor": "#5865F2", "roleName": role, "serverId": server_id,
    }  # fmt: skip


@pytest.mark.parametrize("by_header", [False, True])
async def test_an_admin_makes_changes_pauses_and_deletes_a_rule(
    browser: Browser, world: dict[str, Any], by_header: bool
):
    session_id = await browser.sign_in("ada")
    if by_header:
        browser.client.cookies.clear()
        browser.client.headers["x-session-id"] = session_id
    server_id = await with_server(browser, builders(world))
    (server,) = (await browser.client.get("/api/servers")).json()
    assert server["id"] == builders(world)["id"]
    assert server["internalId"] == server_id
    assert server["botInvited"] is True
    assert (server["verificationRulesCount"], server["verificationRules"]) == (0, [])

    made = await browser.client.post("/api/verification-rules", json=rule(world, server_id))
    assert made.status_code == 201, made.text
    stored = made.json()
    sent = rule(world, server_id) | {"contractAddress": contract(world).lower()}
    assert {name: stored[name] for name in sent} == sent
    assert (stored["state"], stored["singleSources"]) == ("active", [])
    assert stored["removal"] == {"mode": "now", "hours": 0}
    path = f"/api/verification-rules/{stored['id']}"
    listed = await browser.client.get(f"/api/verification-rules?serverId={server_id}")
    assert [item["id"] for item in listed.json()] == [stored["id"]]
    assert (await browser.client.get(path)).json() == stored

    changed = await browser.client.patch(path, json={"minTokens": 3, "removal": {"mode": "grace", "hours": 24}})
    assert changed.status_code == 200, changed.text
    assert changed.json()["minTokens"] == 3
    assert changed.json()["removal"] == {"mode": "grace", "hours": 24}
    assert (stored["delegated"], changed.json()["delegated"]) == (False, False)
    assert (await browser.client.patch(path, json={"delegated": True})).json()["delegated"] is True
    assert (await browser.client.patch(path, json={"minTokens": 2})).json()["delegated"] is True
    moved = await browser.client.patch(path, json={"roleId": role_id(builders(world), "Whale")})
    assert (moved.json()["roleName"], moved.json()["roleColor"]) == ("Whale", "#9B59B6")
    assert (await browser.client.patch(path, json={"state": "paused"})).json()["state"] == "paused"
    assert (await browser.client.patch(path, json={"shadow": True})).json()["state"] == "shadow"
    assert (await browser.client.patch(path, json={"state": "gone"})).status_code == 400

    place, whale = f"/api/servers/{server_id}/protection", moved.json()["roleId"]
    assert (await browser.client.put(f"{place}/roles/{whale}", json={"protected": True})).json() == {"success": True}
    assert (await browser.client.put(f"{place}/members/1", json={"protected": True})).status_code == 404
    said = (await browser.client.get(place)).json()
    (protected,) = said["roles"]
    since = datetime.fromisoformat(protected.pop("since"))
    assert abs(datetime.now(UTC) - since) < timedelta(minutes=5)
    assert (said["members"], protected) == ([], {"roleId": whale, "roleName": "Whale", "by": "Ada"})

    recheck = await browser.client.post(f"/api/servers/{server_id}/recheck")
    assert recheck.status_code == 202
    released = await browser.client.post(f"/api/servers/{server_id}/breaker", json={"approve": True})
    assert (released.status_code, released.json()) == (200, {"success": True, "roles": 0})
    kinds = [line["kind"] for line in (await browser.client.get(f"/api/servers/{server_id}/events")).json()]
    assert kinds[0] == "recheck.asked"
    assert kinds[-1] == "server.added"
    assert (await browser.client.get("/api/analytics")).json() == {
        "totalVerifications": 0, "activeRules": 0, "connectedServers": 1,
    }  # fmt: skip

    assert (await browser.client.delete(path)).status_code == 200
    assert (await browser.client.get(path)).status_code == 404


async def test_roles_that_must_not_be_granted_are_refused_each_with_its_reason(browser: Browser, world: dict[str, Any]):
    await browser.sign_in("ada")
    guild = builders(world)
    server_id = await with_server(browser, guild)
    roles = (await browser.client.get(f"/api/discord/roles?serverId={guild['id']}")).json()
    by_name = {role["name"]: role for role in roles}
    assert "@everyone" not in by_name
    assert by_name["Holder"]["assignable"] is True
    reasons: set[str] = set()
    managed = next(role["name"] for role in guild["roles"] if role["managed"])
    for name in ("Admin", "Moderator", "Founder", "@everyone", managed):
        answer = await browser.client.post("/api/verification-rules", json=rule(world, server_id, name))
        assert answer.status_code == 400, name
        reasons.add(answer.json()["message"])
        if name != "@everyone":
            assert by_name[name]["assignable"] is False
            assert by_name[name]["reason"] == answer.json()["message"]
    assert len(reasons) == 5
    assert (await browser.client.post("/api/verification-rules", json=rule(world, server_id))).status_code == 201


TAGGED: dict[str, tuple[dict[str, str | None], str]] = {
    "Linked": ({"guild_connections": None}, "Linked Role"),
    "Booster": ({"premium_subscriber": None}, "boost"),
    "Patron": ({"integration_id": "7", "subscription_listing_id": "8", "available_for_purchase": None}, "shop"),
    "Streamer": ({"integration_id": "7"}, "integration"),
}


@pytest.fixture
async def tagged(discord: None) -> AsyncIterator[dict[str, Any]]:
    """The world in which the guild Base Builders has a role of each kind that Discord creates."""
    async with httpx.AsyncClient(base_url=settings().sandbox_url, verify=False) as sandbox:

        async def change(**body: Any) -> None:
            answer = await sandbox.post("/control/guilds", json={"guild": "Base Builders", **body})
            assert answer.status_code == 200, answer.text

        for name, (tags, _) in TAGGED.items():
            await change(action="add_role", name=name, tags=tags, position=1)
        yield (await sandbox.get("/control/world")).json()
        for name in TAGGED:
            await change(action="edit_role", role=name, tags={})
            await change(action="delete_role", role=name)


async def test_roles_that_discord_gives_are_never_assignable_and_say_who_gets_them(
    browser: Browser, tagged: dict[str, Any]
):
    await browser.sign_in("ada")
    guild = builders(tagged)
    server_id = await with_server(browser, guild)
    roles = (await browser.client.get(f"/api/discord/roles?serverId={guild['id']}")).json()
    by_name = {role["name"]: role for role in roles}
    for name, (_, why) in TAGGED.items():
        answer = await browser.client.post("/api/verification-rules", json=rule(tagged, server_id, name))
        assert answer.status_code == 400, name
        assert by_name[name]["assignable"] is False
        assert why in by_name[name]["reason"] == answer.json()["message"]


async def test_a_rule_that_goes_while_it_is_changed_or_deleted_again_is_not_found(
    browser: Browser, world: dict[str, Any]
):
    await browser.sign_in("ada")
    server_id = await with_server(browser, builders(world))
    for _ in range(4):
        made = (await browser.client.post("/api/verification-rules", json=rule(world, server_id))).json()
        path = f"/api/verification-rules/{made['id']}"
        deletes = [browser.client.delete(path) for _ in range(4)]
        changes = [browser.client.patch(path, json={"ruleName": "Late"}) for _ in range(2)]
        answers = await asyncio.gather(*deletes, *changes)
        assert sorted(answer.status_code for answer in answers[:4]) == [200, 404, 404, 404]
        assert {answer.status_code for answer in answers[4:]} <= {200, 404}


async def test_an_empty_list_from_discord_tells_no_admin_that_they_run_nothing(
    browser: Browser, world: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    await browser.sign_in("ada")
    await with_server(browser, builders(world))
    # Otherwise the list that was read a moment ago would be used again.
    monkeypatch.setattr(gateways().oauth, "_own_guilds", OwnGuilds())
    async with httpx.AsyncClient(base_url=settings().sandbox_url, verify=False) as sandbox:
        await sandbox.post("/control/faults", json={"target": "discord", "kind": "empty", "seconds": 60})
        try:
            answer = await browser.client.post("/api/admin/sync-servers")
            invited = await browser.client.get("/api/discord/servers")
            by_hand = {"discordServerId": builders(world)["id"], "serverName": "Base Builders"}
            added = await browser.client.post("/api/servers", json=by_hand)
        finally:
            await sandbox.delete("/control/faults")
    for one in (answer, invited, added):
        assert (one.status_code, "Discord" in one.text) == (503, True), f"{one.request.url}: {one.text}"
    assert [server["id"] for server in (await browser.client.get("/api/servers")).json()] == [builders(world)["id"]]


async def test_others_cannot_read_or_write_in_a_server(
    browser: Browser, new_browser: Callable[[], Browser], world: dict[str, Any]
):
    await browser.sign_in("ada")
    guild = builders(world)
    server_id = await with_server(browser, guild)
    made = (await browser.client.post("/api/verification-rules", json=rule(world, server_id))).json()
    mallory = new_browser()
    await mallory.sign_in("mallory")
    assert (await mallory.client.get("/api/servers")).json() == []
    for method, path, body in [
        ("GET", f"/api/verification-rules?serverId={server_id}", None),
        ("GET", f"/api/verification-rules/{made['id']}", None),
        ("PATCH", f"/api/verification-rules/{made['id']}", {"state": "paused"}),
        ("DELETE", f"/api/verification-rules/{made['id']}", None),
        ("POST", "/api/verification-rules", rule(world, server_id)),
        ("GET", f"/api/discord/roles?serverId={guild['id']}", None),
        ("POST", f"/api/servers/{server_id}/recheck", None),
        ("POST", f"/api/servers/{server_id}/breaker", {"approve": True}),
        ("GET", f"/api/servers/{server_id}/events", None),
        ("POST", "/api/servers", {"discordServerId": guild["id"], "serverName": "Mine"}),
    ]:
        answer = await mallory.client.request(method, path, json=body)
        assert answer.status_code == 404, f"{method} {path}: {answer.text}"
    assert (await browser.client.get(f"/api/verification-rules/{made['id']}")).json()["state"] == "active"


async def test_the_invite_list_and_links(browser: Browser, world: dict[str, Any]):
    await browser.sign_in("ada")
    guilds = (await browser.client.get("/api/discord/servers")).json()
    assert {guild["name"]: guild["owner"] for guild in guilds} == {"Base Builders": True, "Cool Holders Club": True}
    navigation = (await browser.client.get("/api/discord/invite")).json()["inviteUrl"]
    assert "permissions=268439808" in navigation
    one = (await browser.client.get(f"/api/discord/invite-url?serverId={guilds[0]['id']}")).json()["inviteUrl"]
    assert "permissions=2416004112" in one
    assert f"guild_id={guilds[0]['id']}" in one
    assert urlsplit(one).path == urlsplit(settings().discord_authorize_url).path
    assert (await browser.client.get("/api/discord/invite-url?serverId=1%26permissions%3D8")).status_code == 400


async def test_a_form_without_its_fields_is_refused_with_the_forms_words(browser: Browser, discord: None):
    await browser.sign_in("ada")
    answer = await browser.client.post("/api/servers", json={"discordServerId": " ", "serverName": "x"})
    assert answer.status_code == 400
    assert answer.json() == {"message": "Please fill in Discord Server ID and Server Name"}


async def test_an_icon_is_optional_and_comes_from_discords_cdn_only(browser: Browser, world: dict[str, Any]):
    await browser.sign_in("ada")
    payload = {"discordServerId": builders(world)["id"], "serverName": "Base Builders"}
    elsewhere = {"serverIcon": "https://cdn.discordapp.com.evil.example/icons/1/a.png"}
    cut = {"serverIcon": f"https://cdn.discordapp.com/icons/1/a.png?{'a' * 500}"}
    for wrong in (elsewhere, cut):
        refused = await browser.client.post("/api/servers", json=payload | wrong)
        assert refused.status_code == 400
        assert "Discord's own CDN" in refused.json()["message"]
    for icon in ({}, {"serverIcon": "https://cdn.discordapp.com/icons/1/a.png", "description": "Who builds on Base"}):
        assert (await browser.client.post("/api/servers", json=payload | icon)).status_code == 201
    assert (await browser.client.get("/api/servers")).json()[0]["iconUrl"] == icon["serverIcon"]


async def test_a_member_proves_a_wallet_by_its_bio_and_removes_it(
    browser: Browser, new_browser: Callable[[], Browser], world: dict[str, Any]
):
    await browser.sign_in("carol")
    address = wallet(world, "carol")
    challenge = (await browser.client.get(f"/api/wallet-challenge?address={address}")).json()
    assert challenge["code"].startswith("holdfast-")
    assert challenge["handleMarker"] == "holdfast:carol"
    assert challenge["resolved"] == {"name": None, "address": address.lower()}
    proof = {"walletAddress": address, "verificationMethod": "opensea_bio"}

    async with httpx.AsyncClient(base_url=settings().sandbox_url, verify=False) as sandbox:

        async def bio(text: str) -> None:
            assert (await sandbox.put(f"/control/opensea/accounts/{address}", json={"bio": text})).status_code == 200

        mallory = new_browser()
        await mallory.sign_in("mallory")
        for text in ("Holdfast", "carol", "mallory", "holdfast:carol", f"my code is {challenge['code']}", ""):
            await bio(text)
            refused = (await mallory.client.post("/api/verify-wallet", json=proof)).json()
            assert refused["success"] is False, text
            assert refused["message"]

        await bio("Holdfast carol")
        assert (await browser.client.post("/api/verify-wallet", json=proof)).json()["success"] is False
        await bio(f"gm, {challenge['code']}")
        proved = await browser.client.post("/api/verify-wallet", json=proof)
        assert proved.json()["success"] is True, proved.text
        await bio("")

    (entry,) = (await browser.client.get("/api/wallet-verifications")).json()
    assert entry["walletAddress"] == address.lower()
    assert entry["verificationMethod"] == "opensea_bio"
    user = (await browser.client.get("/api/auth/user")).json()
    assert user["isVerified"] is True
    assert user["verifiedWallets"] == [entry]
    assert (await mallory.client.get(f"/api/wallet-verifications?userId={user['id']}")).status_code == 403
    assert (await mallory.client.get("/api/wallet-verifications")).json() == []
    assert (await mallory.client.delete(f"/api/wallet-verifications/{entry['id']}")).status_code == 404
    assert (await browser.client.delete(f"/api/wallet-verifications/{entry['id']}")).status_code == 200
    assert (await browser.client.get("/api/wallet-verifications")).json() == []
