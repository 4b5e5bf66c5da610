"""`make live-check` with nodes that have the limits of real plans: it reports each limit, and readers begin with it."""

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from app.live_check import ask_all, limits_said, store_limits
from gateways import close_gateways, gateways
from gateways.evm.rpc import node_limits
from gateways.evm.rpc.node_limits import NodeLimits
from gateways.evm.transfer_logs import TransferLogs
from models import transaction, use
from sandbox.chains.plans import PLANS
from services.runtime import node_limit_sharing as kept
from settings import CALLBACK_PATH, settings


@pytest.fixture(scope="module")
def aged(sandbox_url: str) -> str:
    """The sandbox, with chains so old that some blocks have no state any more."""
    with httpx.Client(base_url=sandbox_url, timeout=30) as control:
        for chain in PLANS:
            control.post(f"/control/chains/{chain}/mine", json={"blocks": 150}).raise_for_status()
    return sandbox_url


@pytest.fixture
async def world(aged: str, database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[str]:
    """The settings of an operator whose nodes are the strict ones, and a database."""
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("SANDBOX_PORT", str(urlsplit(aged).port))
    for name in ("PORT", "PUBLIC_URL"):
        monkeypatch.delenv(name, raising=False)
    settings.cache_clear()
    await close_gateways()
    async with httpx.AsyncClient(base_url=aged, timeout=30) as control:
        # Other tests sign in at addresses of their own.
        callback = settings().public_url + CALLBACK_PATH
        (await control.post("/control/application", json={"redirect_uris": [callback]})).raise_for_status()
        yield database_url
        (await control.post("/control/application", json={"redirect_uris": []})).raise_for_status()
    await close_gateways()
    await use(None)
    settings.cache_clear()


async def test_it_tells_what_each_node_gives_and_keeps_it(world: str) -> None:
    found = {one.name: one for one in await ask_all(gateways(), settings())}
    assert [one for one in found.values() if not one.good] == []
    said = {chain: found[f"{chain}: node 1 gives"].text for chain in PLANS}
    assert said == {chain: found[f"{chain}: node 2 gives"].text for chain in PLANS}
    assert said["arbitrum"] == (
        "logs of 10 blocks at a time; batches; state override; the state of the last 127 blocks; the finalized block"
    )
    assert said["apechain"].startswith("logs of 500 blocks at a time; batches of 3; state override;")
    assert said["apechain"].endswith("; no finalized block")
    assert said["polygon"].startswith("logs of 10,000 blocks at a time; batches of 3; no state override;")
    assert said["ethereum"].startswith("logs of 10,000 blocks at a time, of named contracts only; batches; state")
    assert said["base"].startswith("logs of 10,000 blocks at a time; batches of 10; state override;")

    assert (await store_limits()).startswith("What the nodes give is kept")
    node_limits.forget()
    await use(world)
    async with transaction() as db:
        assert len(await kept.read(db)) == 2 * len(PLANS)
    await kept.exchange()
    (url, _) = settings().rpc["arbitrum"]
    assert node_limits.known(url) == NodeLimits(
        log_blocks=10, logs_need_address=False, state_override=True, states=127, finalized=True
    )


async def test_the_readers_begin_with_what_it_found(world: str, sandbox_url: str) -> None:
    await gateways().node_probe.limits("arbitrum", 0)
    assert await store_limits()
    await close_gateways()
    await use(world)
    await kept.exchange()
    transfers = gateways().transfers
    assert isinstance(transfers, TransferLogs)
    head = await transfers.head("arbitrum", 0)
    async with httpx.AsyncClient(base_url=sandbox_url, timeout=30) as control:
        since = (await control.get("/control/requests", params={"since": 2**31})).json()["next"]
        first = max(0, head.block - 50)
        read = await transfers.of_contracts("arbitrum", ["0x" + "77" * 20], first, head.block, 0)
        asked = (await control.get("/control/requests", params={"since": since})).json()["requests"]
    assert read.last == head.block
    statuses = {
        one["status"] for one in asked if one["target"] == "rpc:arbitrum" and one["rpc_method"] == "eth_getLogs"
    }
    assert statuses == {200}, "none was refused"


async def test_without_a_database_it_says_that_nothing_is_kept(world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABASE_URL")
    settings.cache_clear()
    assert "not kept: Holdfast does not run here" in await store_limits()
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    settings.cache_clear()
    node_limits.note("https://x.example", batch=3)
    assert "What the nodes give is not kept: " in await store_limits()


def test_limits_in_words() -> None:
    assert limits_said(NodeLimits()) == (
        "logs of 10,000 blocks at a time; batches; unknown whether state override; unknown how much old state; "
        "unknown whether a finalized block"
    )
    poor = NodeLimits(log_blocks=1, batch=1, state_override=False, states=0, finalized=False)
    assert limits_said(poor) == (
        "logs of 1 block at a time; no batches; no state override; no state but the newest; no finalized block"
    )
