"""Which processes run for which settings, and with which arguments and environment."""

import asyncio
from pathlib import Path
from urllib.request import proxy_bypass

import httpx
import pytest
from alembic.script import ScriptDirectory

from app.supervisor import probe
from app.supervisor.companions import start_if_alone
from app.supervisor.probe import answers_ok
from app.supervisor.processes import Web, database_dir, make_plan
from app.supervisor.single_instance import Lock, Running
from settings import ROOT, Settings, load, settings

LIVE = {"DISCORD_CLIENT_ID": "1", "DISCORD_CLIENT_SECRET": "s", "DISCORD_BOT_TOKEN": "t", "SECRET_KEY": "k" * 40}


@pytest.fixture
def sandboxed(monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The settings of a fresh machine."""
    for name in (*LIVE, "DATABASE_URL", "SWEEP_SECONDS", "PORT", "PUBLIC_URL", "SANDBOX_PORT"):
        monkeypatch.delenv(name, raising=False)
    return load()


def test_without_credentials_the_sandbox_runs_first(sandboxed: Settings) -> None:
    plan = make_plan(sandboxed, Web.ABSENT)
    assert [program.name for program in plan.programs] == ["sandbox", "bot", "jobs"]
    assert plan.programs[0].ready_port == 3210
    assert plan.database == ROOT / "data" / "sandbox" / "db"


def test_a_database_behind_a_link_is_named_by_its_own_directory(sandboxed: Settings, tmp_path: Path) -> None:
    """A restore and an update move it, and would otherwise move the link."""
    chosen = sandboxed.model_copy(update={"data_dir": tmp_path})
    link, disk = tmp_path / "sandbox" / "db", tmp_path / "disk"
    link.parent.mkdir()
    link.symlink_to(disk)
    assert database_dir(chosen) == link, "the disk is not mounted, and no empty database is made in its place"
    disk.with_name("disk.restored").mkdir()
    assert database_dir(chosen) == disk, "a restore was killed between its two moves"
    disk.with_name("disk.restored").rename(disk)
    assert database_dir(chosen) == disk


def test_the_sandbox_gets_no_secret_of_the_product(sandboxed: Settings) -> None:
    sandbox, *others = make_plan(sandboxed, Web.ABSENT).programs
    secret = {"DATABASE_URL", "REDIS_URL", "SECRET_KEY", "SESSION_SECRET", "SECRET_KEY_PREVIOUS", "MONITOR_TOKEN"}
    assert secret <= sandbox.without
    assert not any(program.without for program in others)


def test_the_sandbox_is_strict_unless_told_otherwise(sandboxed: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SANDBOX_STRICT", raising=False)
    told = make_plan(sandboxed, Web.ABSENT).programs[0].environment
    assert (told["SANDBOX_STRICT"], told["PUBLIC_URL"]) == ("1", "http://localhost:3000")
    monkeypatch.setenv("SANDBOX_STRICT", "0")
    assert make_plan(sandboxed, Web.ABSENT).programs[0].environment["SANDBOX_STRICT"] == "0"


def test_sweeps_are_frequent_in_the_sandbox_unless_an_operator_sets_them(
    sandboxed: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sandboxed.sweep_seconds == 20
    monkeypatch.setenv("SWEEP_SECONDS", "7")
    assert load().sweep_seconds == 7
    for name, value in LIVE.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("SWEEP_SECONDS")
    assert load().sweep_seconds == 86_400


def test_with_credentials_there_is_no_sandbox_and_the_data_lie_apart(
    sandboxed: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in LIVE.items():
        monkeypatch.setenv(name, value)
    plan = make_plan(load(), Web.ABSENT)
    assert [program.name for program in plan.programs] == ["bot", "jobs"]
    assert plan.database == ROOT / "data" / "live" / "db"
    assert "console" not in plan.ready_text


@pytest.mark.parametrize("kept", [{}, {"no_proxy": "intern.example"}, {"NO_PROXY": "intern.example"}])
def test_this_machine_is_asked_without_the_machines_proxy(
    sandboxed: Settings, monkeypatch: pytest.MonkeyPatch, kept: dict[str, str]
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (kept | {"HTTP_PROXY": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}).items():
        monkeypatch.setenv(name, value)
    for name, value in make_plan(sandboxed, Web.ABSENT).environment.items():
        monkeypatch.setenv(name, value)
    client = httpx.Client()
    straight = {name: client._transport_for_url(httpx.URL(f"http://{name}:3210/x")) is client._transport
                for name in ("localhost", "127.0.0.1", "[::1]", "intern.example", "elsewhere.example")}  # fmt: skip
    wanted = {"localhost": True, "127.0.0.1": True, "[::1]": True, "intern.example": bool(kept)}
    assert straight == wanted | {"elsewhere.example": False}


def test_a_machine_that_asks_no_host_by_its_proxy_goes_on_so(
    sandboxed: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the standard library reads it, by which the sockets of nodes find their proxy."""
    monkeypatch.delenv("NO_PROXY", raising=False)
    for name, value in {"no_proxy": "*", "https_proxy": "http://127.0.0.1:9"}.items():
        monkeypatch.setenv(name, value)
    for name, value in make_plan(sandboxed, Web.ABSENT).environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_bypass("node.example")


def test_a_database_of_the_operators_is_used_as_it_is(sandboxed: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://db.example/holdfast")
    plan = make_plan(load(), Web.ABSENT)
    assert plan.database is None
    assert plan.environment["DATABASE_URL"] == "postgresql://db.example/holdfast"


def test_the_web_is_watched_and_told_apart_from_a_plain_start(sandboxed: Settings) -> None:
    plan = make_plan(sandboxed, Web.RELOADING)
    assert "web" in [program.name for program in plan.programs]
    assert plan.health == (3000, "/health", "localhost:3000", "localhost")
    assert plan.environment["HOLDFAST_SUPERVISED"] == "1"
    assert plan.ready_text.startswith("Holdfast is ready at http://localhost:3000 (sandbox console: http://")


async def test_the_web_is_asked_at_the_interface_that_it_serves(
    sandboxed: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        writer.close()

    for name, value in LIVE.items():
        monkeypatch.setenv(name, value)
    server = await asyncio.start_server(answer, "127.0.0.2", 0)
    port = server.sockets[0].getsockname()[1]
    monkeypatch.setenv("PORT", str(port))
    monkeypatch.setenv("BIND", "127.0.0.2")
    async with server:
        plan = make_plan(load(), Web.BUILT)
        assert plan.health is not None
        assert await answers_ok(*plan.health)
        assert await asyncio.to_thread(probe.main) == 0
        # The settings take blanks for nothing, so such a web runs and must not count as ill.
        monkeypatch.setenv("PORT", f" {port}")
        monkeypatch.setenv("BIND", "127.0.0.2 ")
        assert await asyncio.to_thread(probe.main) == 0


async def test_a_program_that_speaks_no_http_does_not_answer() -> None:
    """Another program may have the port, and send more than any first line of HTTP."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"x" * 2**18)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        assert not await answers_ok(server.sockets[0].getsockname()[1], "/health", "localhost", "127.0.0.1")


@pytest.mark.parametrize("bind", ["", "127.0.0.1", "0.0.0.0", "::", "::1"])
def test_the_web_on_every_interface_is_asked_at_this_machine(bind: str) -> None:
    assert probe.address_of(bind) == "localhost"


def test_a_web_that_never_listens_elsewhere_is_asked_at_this_machine(
    sandboxed: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BIND", "127.0.0.2")
    for web in (Web.BUILT, Web.RELOADING):
        health = make_plan(load(), web).health
        assert health is not None
        assert health[3] == "localhost", "the sandbox"
    for name, value in LIVE.items():
        monkeypatch.setenv(name, value)
    health = make_plan(load(), Web.RELOADING).health
    assert health is not None
    assert health[3] == "localhost", "hot reload"


def test_the_start_knows_the_newest_migration_without_alembic(sandboxed: Settings) -> None:
    newest = ScriptDirectory(str(ROOT / "models" / "migrations")).get_current_head()
    assert make_plan(sandboxed, Web.BUILT).newest_migration == newest


def test_the_jobs_leave_the_processor_to_what_people_wait_for(sandboxed: Settings) -> None:
    assert [program.name for program in make_plan(sandboxed, Web.BUILT).programs if program.after_health] == ["jobs"]


def test_hot_reload_compresses_nothing_with_brotli(sandboxed: Settings) -> None:
    (web,) = (one for one in make_plan(sandboxed, Web.RELOADING).programs if one.name == "web")
    assert web.environment == {"REFLEX_FRONTEND_COMPRESSION_FORMATS": "gzip"}


async def test_a_supervised_web_process_brings_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_SUPERVISED", "1")
    async with start_if_alone() as database_url:
        assert database_url is None


async def test_a_plain_web_process_uses_what_already_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_SUPERVISED", raising=False)
    monkeypatch.setattr("app.supervisor.companions.data_dir", lambda _: tmp_path)
    assert settings()
    lock = Lock(tmp_path)
    lock.take(Running(1, "http://localhost:3000", "postgresql://somewhere"))
    async with start_if_alone() as database_url:
        assert database_url == "postgresql://somewhere"
    lock.release()
