"""Bot and jobs of an earlier version beside this version's on one database, until the earlier ones end.

Each interaction is answered exactly once, and each role is written exactly once.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest
from sqlalchemy import text

import models
from app.supervisor.single_instance import MARK
from gateways import close_gateways
from models import transaction
from services.guilds import rate_shares
from services.runtime.task_cancellation import stop
from settings import settings
from tests.conftest import ROOT, running_sandbox
from tests.jobs.town import Town, a_town, until
from tests.support.databases import named, plain
from tests.system.whole.earlier import earlier_version

DATABASE = "rolling_restart"
PEOPLE = ("ada", "bob", "carol", "dave")
TRADERS = PEOPLE[1:]
ANSWERS, TRADES = 5, 2
"""The least number of answers and trades during a stage of the restart."""
STOP_SECONDS = 60
BREATH_SECONDS = 0.2


class Version:
    """One version of the product, in `root`, with its processes."""

    def __init__(self, root: Path, directory: Path, name: str, environment: dict[str, str]) -> None:
        self._root, self._directory, self._name = root, directory, name
        self._environment = environment | {MARK: str(directory), "DATA_DIR": str(directory / f"data-{name}")}
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def migrate(self) -> None:
        """Migrate the database to this version's newest revision."""
        done = subprocess.run(
            [sys.executable, "-m", "alembic", "upgrade", "head"],
            cwd=self._root, env=self._environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self, module: str) -> None:
        """Start `python -m module`."""
        with (self._directory / f"{self._name}-{module}.log").open("wb") as log:
            self._running[module] = subprocess.Popen(
                [sys.executable, "-m", module], cwd=self._root, env=self._environment, stdout=log, stderr=log
            )

    async def end(self, module: str) -> None:
        """Stop the process properly, and wait until it has ended."""
        process = self._running.pop(module)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, STOP_SECONDS) in {0, -signal.SIGTERM}, self.said(module)

    def said(self, module: str) -> str:
        """Return the end of the process's output."""
        return (self._directory / f"{self._name}-{module}.log").read_text(errors="replace")[-4000:]

    def stop(self) -> None:
        """End every process that still runs."""
        for process in self._running.values():
            process.kill()
            process.wait()


@contextmanager
def versions(url: str, sandbox: str, directory: Path) -> Iterator[tuple[Version, Version]]:
    """The earlier version and the present one, on one database and one outside world."""
    environment = {name: value for name, value in os.environ.items() if name not in {"PUBLIC_URL", "REDIS_URL"}}
    environment |= {"DATABASE_URL": url, "SANDBOX_PORT": str(urlsplit(sandbox).port), "PYTHONWARNINGS": "ignore"}
    earlier = Version(earlier_version(directory), directory, "earlier", environment)
    present = Version(ROOT, directory, "present", environment)
    with ExitStack() as stack:
        for one in (earlier, present):
            stack.callback(one.stop)
        try:
            yield earlier, present
        except BaseException:
            for log in sorted(directory.glob("*.log")):
                print(f"{log.name}:\n{log.read_text(errors='replace')[-4000:]}")  # shown with a failure
            raise


@pytest.fixture
def database(postgres_url: str) -> str:
    """The address of a database that is still empty."""
    with psycopg.connect(plain(postgres_url), autocommit=True) as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {DATABASE}".encode())
        admin.execute(f"CREATE DATABASE {DATABASE}".encode())
    return named(postgres_url, DATABASE)


@pytest.fixture
def sandbox(database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """A sandbox of the test's own, which this process also uses."""
    with running_sandbox(strict=False) as url:
        httpx.post(f"{url}/control/application", json={"max_concurrency": 1_000}).raise_for_status()
        monkeypatch.setenv("DATA_DIR", str(tmp_path))
        monkeypatch.setenv("DATABASE_URL", database)
        monkeypatch.setenv("SANDBOX_PORT", str(urlsplit(url).port))
        for name in ("PORT", "PUBLIC_URL"):
            monkeypatch.delenv(name, raising=False)
        settings.cache_clear()
        yield url
        settings.cache_clear()


class Visitors:
    """People who use the bot and trade without a pause."""

    def __init__(self, town: Town) -> None:
        self._town = town
        self._free = asyncio.Lock()
        self.over: bool = False
        self.answers: list[dict[str, Any]] = []
        self.without: list[dict[str, Any]] = []
        self.trades: list[tuple[str, str]] = []

    async def ask(self) -> None:
        """Use a command again and again until the end."""
        while not self.over:
            async with self._free:
                body = {"guild": self._town.name, "user": self._town.people["ada"]["id"], "kind": "command",
                        "name": "wallets", "wait": 30}  # fmt: skip
                answer = await self._town.control.post("/control/interactions", json=body, timeout=90)
            (self.answers if answer.status_code == 200 else self.without).append(answer.json())
            # Without a pause they would keep a processor busy that other tests need.
            await asyncio.sleep(BREATH_SECONDS)

    async def trade(self) -> None:
        """Buy tokens and sell each when its role has come, until the end; record the writes that Discord should get."""
        while not self.over:
            for who in TRADERS:
                token = await self._town.buys(who)
                self.trades.append(("PUT", self._town.people[who]["id"]))
                await until(lambda who=who: self._town.has(who, "Holder"), 300)
                await self._town.sells(token)
                self.trades.append(("DELETE", self._town.people[who]["id"]))
                await until(lambda who=who: self._lost(who), 300)

    async def _lost(self, who: str) -> bool:
        return not await self._town.has(who, "Holder")

    async def go_on(self) -> None:
        """Wait for some more answers and trades."""
        answers, trades = len(self.answers) + ANSWERS, len(self.trades) + TRADES

        async def so() -> bool:
            return len(self.answers) + len(self.without) >= answers and len(self.trades) >= trades

        await until(so, 300)

    @asynccontextmanager
    async def silent(self) -> AsyncIterator[None]:
        """A period in which nobody waits for an answer of the bot."""
        async with self._free:
            yield


async def connected() -> bool:
    """Return whether the present bot has a session."""
    async with transaction() as db:
        found = await db.execute(text("SELECT count(*) FROM shard WHERE session_id IS NOT NULL"))
        return bool(found.scalar_one())


async def alone() -> bool:
    """Return whether no bot of the earlier version counts as running."""
    async with transaction() as db:
        return not await rate_shares.is_beside_an_older_bot(db)


async def test_during_a_rolling_restart_everything_is_answered_and_written_once(
    database: str, sandbox: str, short_dir: Path
) -> None:
    with versions(database, sandbox, short_dir) as (earlier, present):
        earlier.migrate()
        for module in ("jobs", "bot"):
            earlier.start(module)
        present.migrate()
        await models.use(database)
        try:
            async with a_town(sandbox, *PEOPLE) as town:
                await restarted(town, earlier, present)
        finally:
            await close_gateways()
            await models.use(None)


async def restarted(town: Town, earlier: Version, present: Version) -> None:
    """Restart bot and jobs one after the other while people use them."""
    await town.rule("Holder")
    for who in TRADERS:
        await town.prove(who)
    visitors = Visitors(town)
    await until(lambda: offers(town), 300)
    since = await town.mark()
    tasks = [asyncio.create_task(visitors.ask()), asyncio.create_task(visitors.trade())]
    try:
        await visitors.go_on()
        present.start("jobs")
        present.start("bot")
        await until(connected, 300)
        await visitors.go_on()
        assert not await alone(), "both bots hear everything"
        async with visitors.silent():
            # An earlier bot may leave an answer unfinished when it ends.
            await earlier.end("bot")
        await visitors.go_on()
        await earlier.end("jobs")
        await visitors.go_on()
        await until(alone)
        await visitors.go_on()
        visitors.over = True
        await asyncio.gather(*tasks)
    finally:
        await stop(*tasks)
    assert visitors.without == [], present.said("bot")
    requests = [one for one in await town.requests(since, "discord") if one["status"] < 400]
    first = Counter(one["path"] for one in requests if one["path"].endswith("/callback"))
    assert len(first) == len(visitors.answers)
    assert set(first.values()) == {1}, first
    edits = Counter(one["path"] for one in requests if one["method"] == "PATCH" and "/webhooks/" in one["path"])
    assert sum(edits.values()) == len(visitors.answers)
    written, wanted = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for one in requests:
        if one["method"] in {"PUT", "DELETE"} and "/roles/" in one["path"]:
            written[one["path"].partition("/members/")[2].partition("/")[0]].append(one["method"])
    for method, who in visitors.trades:
        wanted[who].append(method)
    assert written == wanted


async def offers(town: Town) -> bool:
    """Return whether Discord knows the bot's commands."""
    body = {"guild": town.name, "user": town.people["ada"]["id"], "kind": "command", "name": "wallets", "wait": 30}
    return (await town.control.post("/control/interactions", json=body, timeout=90)).status_code == 200
