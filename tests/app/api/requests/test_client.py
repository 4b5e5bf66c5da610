"""The Python client against the API itself: it is up to date, and reaches one server, within its scopes and consent."""

import ast
import asyncio
import importlib.util
import re
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlmodel import update

from app.api import api
from app.api.requests.scopes import OPEN
from holdfast_client import Holdfast, HoldfastError
from holdfast_client.client import PATIENCE
from holdfast_client.shapes import PreviewPayload, RulePayload
from models import Access, ApiToken, MemberChoice, Server, transaction
from services.accounts.users import ensure
from services.core.addresses import shorten
from services.engine.previews import plan, preview, try_address
from tests.app.api.browsers import PUBLIC_URL, Browser
from tests.app.api.server.test_rights import RULES
from tests.jobs.town import Town, a_town

GENERATOR = Path(__file__).parents[4] / "clients" / "python" / "generate.py"


class Bridge(httpx.BaseTransport):
    """A transport that carries a thread's requests to the API in this process's event loop."""

    def __init__(self) -> None:
        self._loop, self._api = asyncio.get_running_loop(), httpx.ASGITransport(api)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        async def carry() -> httpx.Response:
            answer = await self._api.handle_async_request(asked)
            return httpx.Response(answer.status_code, headers=answer.headers, content=await answer.aread())

        content = request.read()
        asked = httpx.Request(request.method, request.url, headers=request.headers, content=content)
        return asyncio.run_coroutine_threadsafe(carry(), self._loop).result(timeout=30)


def test_the_client_waits_for_the_longest_preview() -> None:
    assert plan.LISTED_WITHIN + max(preview.LONGEST_SECONDS, try_address.LONGEST_SECONDS) < PATIENCE


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    """A town that ada owns; carol and dave are members with a proved wallet, and dave shares his with the admins."""
    async with a_town(sandbox_url, "ada", "carol", "dave") as made:
        await made.see()
        for who in ("carol", "dave"):
            await made.prove(who)
        async with transaction() as db:
            user_id = await ensure(db, made.people["dave"]["id"], made.people["dave"]["username"])
            db.add(MemberChoice(server_id=made.server_id, user_id=user_id, share_wallets=True))
        yield made


def generator() -> Any:
    spec = importlib.util.spec_from_file_location("generate", GENERATOR)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_client_is_as_the_document_says_and_has_a_call_for_each_that_a_token_may_make() -> None:
    module = generator()
    files = module.written()
    assert module.stale(files) == [], "run clients/python/generate.py"
    assert module.stale({path: text + "\n" for path, text in files.items()}) == ["calls.py", "shapes.py"]
    assert len([name for name in vars(Holdfast) if not name.startswith("_")]) == len(OPEN)


def test_each_call_of_the_recipes_is_one_of_the_client() -> None:
    page = (GENERATOR.parents[2] / "docs" / "recipes.md").read_text()
    used = set(re.findall(r"\b(?:api|other)\.([a-z_]+)\(", page))
    assert len(used) > 10
    assert used <= set(dir(Holdfast))
    for block in re.findall(r"```python\n(.*?)```", page, re.S):
        ast.parse(block)


async def token(new_browser: Callable[[], Browser], town: Town) -> str:
    """A token for the town's server with every scope."""
    browser = new_browser()
    await browser.sign_in(town.people["ada"]["username"])
    body = {"name": "ci", "scopes": ["read", "rules", "members"]}
    return (await browser.client.post(f"/api/servers/{town.server_id}/tokens", json=body)).json()["token"]


async def test_the_client_makes_rules_and_reads_members_with_the_wallets_that_are_shared(
    new_browser: Callable[[], Browser], town: Town
) -> None:
    role, guild_id = await town.role("Holder"), (await town.guild())["id"]
    with Holdfast(PUBLIC_URL, await token(new_browser, town), transport=Bridge()) as client:

        def work() -> str:
            assert [one["internalId"] for one in client.list_servers()] == [town.server_id]
            body: RulePayload = {
                "serverId": town.server_id, "ruleName": "Cats", "blockchain": "base", "contractAddress": town.contract,
                "roleId": role, "roleName": "Holder",
            }  # fmt: skip
            made = client.create_rule({**body, "shadow": True})
            preview: PreviewPayload = {"serverId": town.server_id, "activate": [made["id"]]}
            assert client.preview_rule(preview)["gain"] == 0
            assert client.activate_rules({"serverId": town.server_id, "ruleIds": [made["id"]]})["activated"] == 1
            document = client.export_rules(town.server_id)
            looked = client.import_rules(town.server_id, {"source": "holdfast", "document": document})
            assert [one["why"] for one in looked["skipped"]] == ["The server has this rule already: “Cats”."]
            assert client.change_rule(made["id"], {"state": "paused"})["state"] == "paused"
            assert [one["ruleName"] for one in client.list_rules(town.server_id)] == ["Cats"]
            lines = client.list_events(town.server_id, limit=1)
            assert client.list_events(town.server_id, limit=100, before=lines[-1]["id"])[0]["id"] < lines[-1]["id"]
            assert [one["name"] for one in client.list_roles(guild_id) if one["id"] == role] == ["Holder"]
            members = client.list_members(town.server_id)["members"]
            wallets = {one["name"]: one["wallets"] for one in members if one["walletCount"]}
            dave = town.people["dave"]["username"]
            assert [len(wallets[dave]), wallets[town.people["carol"]["username"]]] == [1, []]
            told = [str(members), str(client.list_events(town.server_id)), str(client.export_server(town.server_id))]
            told += [client.download_members(town.server_id), client.download_payouts(town.server_id)]
            told += [str(client.explain_member(town.server_id, town.people["carol"]["id"]))]
            return "".join(told).lower()

        told = await asyncio.to_thread(work)
    for shown in (town.wallet("carol"), shorten(town.wallet("carol")), town.wallet("dave")):
        assert shown not in told
    assert shorten(town.wallet("dave")) in told


NOT_ABOUT_A_SERVER = {
    "GET /api/servers", "POST /api/collection/parse", "GET /api/collection/{contract}/traits",
    "GET /api/collection/{contract}/traits/{trait_type}", f"POST {RULES}/try-call",
}  # fmt: skip


async def test_another_servers_token_is_404_on_every_call_of_the_client(
    new_browser: Callable[[], Browser], town: Town
) -> None:
    own, rule_id = await token(new_browser, town), await town.rule("Holder")
    async with transaction() as db:
        other = Server(discord_id=str(uuid.uuid4().int)[:18], name="Another")
        db.add(other)
        await db.flush()
        db.add(Access(server_id=other.id or 0, discord_id=town.people["ada"]["id"], owner=True))
        await db.exec(update(ApiToken).values(server_id=other.id))
    known = {
        "server_id": town.server_id, "rule_id": rule_id, "discord_id": town.people["carol"]["id"],
        "serverId": town.server_id, "batch": str(uuid.uuid4()),
    }  # fmt: skip
    with Holdfast(PUBLIC_URL, own, transport=Bridge()) as client:

        def refused(call: str) -> int:
            method, _, path = call.partition(" ")
            operation = api.openapi()["paths"][path][method.lower()]
            needed = [one for one in operation.get("parameters", []) if one.get("required")]
            given: list[Any] = [known.get(one["name"], "1") for one in needed]
            if call == "GET /api/discord/roles":
                given = ["813000000000000001"]
            content = operation.get("requestBody", {}).get("content", {})
            if "application/json" in content:
                example = content["application/json"]["example"]
                given.append({**example, "serverId": town.server_id} if "serverId" in example else example)
            elif content:
                given.append("0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed")
            try:
                getattr(client, operation["operationId"])(*given)
            except HoldfastError as refusal:
                return refusal.status
            return 200

        def every() -> dict[str, int]:
            return {call: refused(call) for call in OPEN if call not in NOT_ABOUT_A_SERVER}

        assert {call: status for call, status in (await asyncio.to_thread(every)).items() if status != 404} == {}
