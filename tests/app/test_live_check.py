"""The check of the real providers, against the sandbox: what it asks and finds, and that it only reads."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from pydantic import SecretStr

from app.live_check import CheckResult, ask_all
from gateways import close_gateways, gateways
from gateways.discord.application import read_application
from gateways.transport.errors import ProviderConfused
from settings import settings


@pytest.fixture
async def world(sandbox_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[str]:
    """The product's settings with the sandbox as outside world, without faults before and after the test."""
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    monkeypatch.setenv("SANDBOX_PORT", str(urlsplit(sandbox_url).port))
    for name in ("PORT", "PUBLIC_URL"):
        monkeypatch.delenv(name, raising=False)
    settings.cache_clear()
    async with httpx.AsyncClient(base_url=sandbox_url, timeout=30) as control:
        await control.delete("/control/faults")
        yield sandbox_url
        await control.delete("/control/faults")
    await close_gateways()
    settings.cache_clear()


async def requests(sandbox: str, since: int) -> dict[str, Any]:
    async with httpx.AsyncClient(base_url=sandbox, timeout=30) as control:
        return (await control.get("/control/requests", params={"since": since})).json()


def by_name(results: list[CheckResult]) -> dict[str, CheckResult]:
    return {one.name: one for one in results}


async def test_a_world_that_is_well_is_found_well_and_only_read(world: str) -> None:
    start = (await requests(world, 2**31))["next"]
    results = await ask_all(gateways(), settings())
    assert [one for one in results if not one.good] == []
    names = by_name(results)
    assert {f"{chain}: node 1" for chain in settings().rpc} <= names.keys()
    assert "Server Members Intent is on" in names["Discord: the application"].text
    asked = (await requests(world, start))["requests"]
    writes = {(one["method"], one["path"].split("?")[0]) for one in asked if one["method"] not in {"GET", "HEAD"}}
    # The POSTs are one with a made-up code, and JSON-RPC, which is always a POST; of that, only reading methods.
    others = {path for method, path in writes if not (method == "POST" and path.startswith(("/rpc", "/solana")))}
    assert others == {"/discord/api/v10/oauth2/token"}
    called = {one["rpc_method"] for one in asked if one.get("rpc_method")}
    assert called
    assert not {method for method in called if "send" in method.lower() or "sign" in method.lower()}


async def test_what_is_wrong_is_named(world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with httpx.AsyncClient(base_url=world, timeout=30) as control:
        for target in ("rpc:base", "opensea"):
            answer = await control.post("/control/faults", json={"target": target, "kind": "malformed", "seconds": 60})
            assert answer.status_code == 200
    monkeypatch.setenv("DISCORD_CLIENT_SECRET", "")
    chosen = settings().model_copy(update={"discord_client_secret": SecretStr("wrong"), "discord_client_id": "1"})
    monkeypatch.setattr("gateways.settings", lambda: chosen)
    found = by_name(await ask_all(gateways(), chosen))
    for name in ("base: node 1", "OpenSea: a profile", "Discord: client id and secret", "Discord: the application"):
        assert not found[name].good, name
    assert "do not belong together" in found["Discord: client id and secret"].text
    assert found["base: node 2"].good
    assert found["Discord: the bot's token"].good


def test_an_application_is_read_strictly() -> None:
    whole = {"id": "1", "name": "x", "flags": 1 << 15, "bot_public": True, "bot_require_code_grant": False}
    assert read_application(whole).members_intent
    assert not read_application({**whole, "flags": 1 << 13}).members_intent
    assert read_application({**whole, "redirect_uris": ["https://x.example/cb"]}).redirects == ("https://x.example/cb",)
    for wrong in ({"flags": None}, {"redirect_uris": [1]}, {"redirect_uris": "x"}, {"id": "x"}):
        with pytest.raises(ProviderConfused):
            read_application({**whole, **wrong})
