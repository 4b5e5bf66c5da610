"""Calls that only read: their requests to Discord, who may make them, what they survive, and that none slows others."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import text
from sqlmodel import col, delete

from gateways import gateways
from gateways.transport.errors import ProviderDown
from models import Access, Member, now, transaction
from settings import settings
from tests.app.api.browsers import Browser
from tests.app.api.server.test_rivals import owner as owner
from tests.app.api.server.test_rivals import town as town
from tests.app.api.test_main_path import builders, with_server
from tests.jobs.town import Town


class Discord:
    """The requests about a guild that the sandbox's Discord got with the bot's token."""

    def __init__(self, sandbox: httpx.AsyncClient, guild_id: str) -> None:
        self._sandbox, self._about = sandbox, f"/guilds/{guild_id}"
        self._since = 0

    async def start(self) -> None:
        self._since = (await self._sandbox.get("/control/requests")).json()["next"]

    async def asked(self) -> list[str]:
        """Return the requests about the guild that came since `start`."""
        noted = (await self._sandbox.get("/control/requests", params={"since": self._since})).json()["requests"]
        return [f"{one['method']} {one['path']}" for one in noted if self._about in one["path"]]


async def _server(ada: Browser, sandbox: httpx.AsyncClient) -> tuple[int, dict[str, Any]]:
    world = (await sandbox.get("/control/world")).json()
    await ada.sign_in("ada")
    return await with_server(ada, builders(world)), world


async def test_strangers_cost_discord_nothing_and_equal_questions_are_asked_once(
    discord: None, new_browser: Callable[[], Browser]
) -> None:
    ada, mallory = new_browser(), new_browser()
    async with httpx.AsyncClient(base_url=settings().sandbox_url, verify=False) as sandbox:
        server_id, world = await _server(ada, sandbox)
        await mallory.sign_in("mallory")
        seen, path = Discord(sandbox, builders(world)["id"]), f"/api/verification-rules?serverId={server_id}"
        async with transaction() as db:
            # In the shared world mallory may be a member, whom signing in has then stored.
            await db.exec(delete(Member).where(col(Member.server_id) == server_id))

        await seen.start()
        answers = await asyncio.gather(*(mallory.client.get(path) for _ in range(40)))
        assert {answer.status_code for answer in answers} == {404}
        assert await seen.asked() == []

        person = next(one for one in world["users"] if one["username"] == "mallory")
        async with transaction() as db:
            db.add(Member(server_id=server_id, discord_id=person["id"], name="mallory"))
        answers = await asyncio.gather(*(mallory.client.get(path) for _ in range(40)))
        own = await ada.client.get(path)
        assert {answer.status_code for answer in answers} == {404}
        assert own.status_code == 200
        assert 0 < len(await seen.asked()) < 40


async def test_looking_is_counted_for_a_person(
    discord: None, new_browser: Callable[[], Browser], monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, bob = new_browser(), new_browser()
    async with httpx.AsyncClient(base_url=settings().sandbox_url, verify=False) as sandbox:
        server_id, _ = await _server(ada, sandbox)
    await bob.sign_in("bob")
    monkeypatch.setenv("LIMIT_READS", "5")
    settings.cache_clear()
    path = f"/api/verification-rules?serverId={server_id}"
    assert {(await bob.client.get(path)).status_code for _ in range(6)} >= {429}
    assert (await ada.client.get(path)).status_code == 200, "others still may"


async def test_looking_is_counted_for_an_address_too(
    discord: None, new_browser: Callable[[], Browser], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIMIT_READS", "2")
    settings.cache_clear()
    nobody = new_browser()
    answers = [await nobody.client.get("/api/servers/1/members") for _ in range(5)]
    assert [answer.status_code for answer in answers] == [401, 401, 401, 401, 429]
    assert (await nobody.client.get("/api/servers")).status_code == 401, "no question about a server"


@pytest.mark.parametrize(
    ("minutes", "away", "seen"),
    [(1, False, [200, 200, 1]), (10, False, [200, 404, 0]), (10, True, [200, 200, 1]), (90, True, [503, 503, 0])],
    ids=["just asked", "asked again", "Discord is away", "Discord is away for long"],
)
async def test_who_no_longer_runs_a_server_loses_the_lists_too(
    discord: None,
    new_browser: Callable[[], Browser],
    monkeypatch: pytest.MonkeyPatch,
    minutes: int,
    away: bool,
    seen: list[int],
) -> None:
    ada, mallory = new_browser(), new_browser()
    async with httpx.AsyncClient(base_url=settings().sandbox_url, verify=False) as sandbox:
        server_id, world = await _server(ada, sandbox)
    await mallory.sign_in("mallory")
    person = next(one for one in world["users"] if one["username"] == "mallory")
    checked_at = now() - timedelta(minutes=minutes)
    async with transaction() as db:
        db.add(Access(server_id=server_id, discord_id=person["id"], checked_at=checked_at))
    if away:

        async def nothing(token: str, *, max_age: float = 0) -> list[object]:
            raise ProviderDown("Discord", "no answer")

        monkeypatch.setattr(gateways().oauth, "my_guilds", nothing)
    listed = await mallory.client.get("/api/servers")
    history = await mallory.client.get("/api/analytics/history", params={"serverId": server_id})
    ids = [one["internalId"] for one in listed.json()] if listed.status_code == 200 else []
    assert [listed.status_code, history.status_code, ids.count(server_id)] == seen


@pytest.mark.parametrize(
    "path",
    [
        "/api/servers", "/api/verification-rules?serverId={server}", "/api/verification-rules/{rule}",
        "/api/servers/{server}/health", "/api/servers/{server}/migrations", "/api/servers/{server}/events",
        "/api/servers/{server}/members/{member}/why",
    ],
)  # fmt: skip
async def test_beside_a_rule_that_a_newer_version_wrote_a_server_can_still_be_read(
    owner: Browser, town: Town, path: str
) -> None:
    expression = {"type": "basic", "chain": "base", "contract": town.contract.lower(), "minTokens": 1}
    payload = {
        "serverId": town.server_id, "ruleName": "A rule", "roleId": await town.role("Holder"), "expression": expression,
    }  # fmt: skip
    made = await owner.client.post("/api/verification-rules", json=payload)
    rule = made.json()["id"]
    await town.see()
    newer, logged = "jsonb_build_object('newer', true)", "data #> '{rule,expression}'"
    async with transaction() as db:
        await db.execute(text(f"UPDATE rule SET expression = expression || {newer} WHERE id = :rule"), {"rule": rule})
        more = f"jsonb_set(data, '{{rule,expression}}', {logged} || {newer})"
        await db.execute(text(f"UPDATE event SET data = {more} WHERE {logged} IS NOT NULL"))
    member = town.people["carol"]["id"]
    found = await owner.client.get(path.format(server=town.server_id, rule=rule, member=member))
    assert found.status_code == 200, found.text
    if path.endswith("{rule}"):
        assert found.json()["summary"] == "A condition that only a newer version knows"
