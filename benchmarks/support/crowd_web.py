"""Waiting times of a browser in a crowd: each call of the REST interface, and complete downloads, over the wire.

A web process of its own works on the crowd's database, with the sandbox as its Discord: the big server is one of the
sandbox's guilds, whose owner asks.
"""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

import httpx
import psycopg

from benchmarks.support.rounds import goal
from setting_checks import libpq_url
from tests.conftest import running_sandbox
from tests.system.web.conftest import running_web, sign_in

CROWD = "crowd"
PERSON, GUILD = "ada", "Base Builders"
MEDIAN_MS, MOST_MS = 150, 400
GROWTH_MB = 30
REST = 0.25
"""Seconds between two calls: most ask Discord for the person's rights, and faster calls would measure its limits."""
_PLENTY = ("SIGN_INS", "WRITES", "PROOFS", "LOOKUPS", "PREVIEWS", "READS", "RECHECKS", "SOCKETS")


@dataclass(frozen=True)
class Took:
    """Milliseconds of one call: by the clock, and of processor time, ours and the database's."""

    clock: float
    processor: float


@dataclass(frozen=True)
class Download:
    """A streamed file: milliseconds until its first byte, and by how many MB the web process grew at most."""

    first: float
    grown: float


def measure(url: str, server_id: int, members: int, times: int, *, every_line: bool) -> None:
    """Make every call in turns, then the downloads, and print both tables; `every_line` streams the whole log,
    and no payout list of all rules."""
    plenty = {f"LIMIT_{name}": "100000" for name in _PLENTY}
    with (
        running_sandbox(strict=False) as sandbox,
        _owned(url, server_id, sandbox) as last_day,
        running_web(url, sandbox, plenty) as web,
        httpx.Client(base_url=web.url, timeout=600) as client,
    ):
        client.headers["Cookie"] = f"hf_session={sign_in(web.url, PERSON)}"
        processes = [*_processes(web.port), *database_processes(url)]
        took = {path: list[Took]() for path in _paths(server_id, members)}
        for _ in range(times + 1):
            for path, found in took.items():
                time.sleep(REST)
                began, busy = time.perf_counter(), processor(processes)
                answer = client.get(path)
                if not path.startswith("/health"):  # which say here that no bot runs
                    answer.raise_for_status()
                found.append(Took(1000 * (time.perf_counter() - began), processor(processes) - busy))
        show("a browser's call", {path: found[1:] for path, found in took.items()})
        base = f"/api/servers/{server_id}"
        files = {"members as CSV": f"{base}/members.csv", "the server as JSON": f"{base}/export"}
        files["payout addresses of one rule as CSV"] = f"{base}/payout.csv?ruleId=7"
        if not every_line:  # a quarter of an hour for 120,000 addresses under 1,000 rules
            files["payout addresses as CSV"] = f"{base}/payout.csv"
        files["the log as CSV"] = f"{base}/events.csv" + ("" if every_line else f"?since={last_day}")
        print("\n| download | first byte, ms | seconds | lines | memory, MB more |\n|---|---|---|---|---|")
        streamed = [_stream(client, name, path, web.port) for name, path in files.items()]
    print()
    goal(CROWD, "a download: so many MB more in the web process", max(one.grown for one in streamed), most=GROWTH_MB)
    goal(CROWD, "a download: its first byte within so many ms", max(one.first for one in streamed), most=MOST_MS)


def _paths(server_id: int, members: int) -> list[str]:
    server = f"/api/servers/{server_id}"
    return [
        "/health", "/health/deep", "/api/servers", "/api/analytics",
        *(f"/api/analytics/history?days={days}" for days in (7, 30, 90)),
        f"/api/analytics/history?days=90&serverId={server_id}",
        f"/api/verification-rules?serverId={server_id}", f"{server}/health", f"{server}/protection",
        f"{server}/breaker",
        f"{server}/members", f"{server}/members?page={members // 100}", f"{server}/members?page={members // 50}",
        *(f"{server}/members?query={query}" for query in ("a", "abc", "nobody+at+all")),
        f"{server}/events", f"{server}/events?kind=role.taken&member=abc", f"{server}/events?kind=rule",
        f"{server}/events?roleId=900007", f"{server}/events?ruleId=7", f"{server}/events?ruleId=999",
        f"{server}/events?until=2000-01-01T00:00:00Z", f"{server}/events?before=1000",
        "/api/me/servers", "/api/me/export", "/api/me/sessions", "/api/wallet-verifications",
    ]  # fmt: skip


@contextmanager
def _owned(url: str, server_id: int, sandbox: str) -> Iterator[str]:
    """Make the big server the sandbox's guild, administered by one person; return when the log's last day began."""
    world = httpx.get(f"{sandbox}/control/world").json()
    person = next(user["id"] for user in world["users"] if user["username"] == PERSON)
    guild = next(one["id"] for one in world["guilds"] if one["name"] == GUILD)
    with psycopg.connect(libpq_url(url), autocommit=True) as db:
        before = db.execute("SELECT discord_id FROM server WHERE id = %s", [server_id]).fetchone()
        assert before is not None
        db.execute("UPDATE server SET discord_id = %s WHERE id = %s", [guild, server_id])
        # As if Discord had just reported it: it is not asked about the other servers, which the sandbox does not have.
        db.execute(
            "INSERT INTO access (server_id, discord_id, owner, checked_at) "
            "SELECT id, %s, true, now() + interval '1 day' FROM server ON CONFLICT DO NOTHING",
            [person],
        )
        last = db.execute("SELECT CAST(max(at) - interval '1 day' AS date) FROM event").fetchone()
        assert last is not None
        try:
            yield f"{last[0]}T00:00:00Z"
        finally:
            db.execute("DELETE FROM access WHERE discord_id = %s", [person])
            db.execute('DELETE FROM "user" WHERE discord_id = %s', [person])
            db.execute("UPDATE server SET discord_id = %s WHERE id = %s", [before[0], server_id])


def _stream(client: httpx.Client, name: str, path: str, port: int) -> Download:
    processes = _processes(port)
    memory = most = _memory(processes)
    began = time.perf_counter()
    first, lines, looked = 0.0, 0, began
    with client.stream("GET", path) as answer:
        answer.raise_for_status()
        for part in answer.iter_raw():
            first = first or 1000 * (time.perf_counter() - began)
            lines += part.count(b"\n")
            if time.perf_counter() - looked > 1:
                most, looked = max(most, _memory(processes)), time.perf_counter()
                print(f"\r  {name}: {lines:,} lines, {(most - memory) / 1024:.0f} MB more", end="", file=sys.stderr)
    grown = (max(most, _memory(processes)) - memory) / 1024
    print(f"| {name} | {first:.0f} | {time.perf_counter() - began:.0f} | {lines:,} | {grown:.0f} |", flush=True)
    return Download(first, grown)


def _processes(port: int) -> list[Path]:
    """Return the web server and its workers."""
    found: list[Path] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"\0PORT={port}\0".encode() in b"\0" + (process / "environ").read_bytes():
                found.append(process)
        except OSError:  # it is another account's, or has ended
            continue
    return found


def database_processes(url: str) -> list[Path]:
    """Return the database server's processes, including those of the present connections."""
    with psycopg.connect(libpq_url(url)) as db:
        rows = db.execute("SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()").fetchall()
    return [Path("/proc") / str(pid) for (pid,) in rows]


def processor(processes: list[Path]) -> float:
    """Return the milliseconds of processor time that these have used; processes that have ended count as zero."""
    spent = 0
    for process in processes:
        with suppress(OSError):
            spent += sum(int(one.read_text().split()[0]) for one in (process / "task").glob("*/schedstat"))
    return spent / 1e6


def _memory(processes: list[Path]) -> int:
    """Return the kilobytes of memory that these use together."""
    rows = (row for process in processes for row in (process / "status").read_text().splitlines())
    return sum(int(row.split()[1]) for row in rows if row.startswith("VmRSS:"))


def show(what: str, took: Mapping[str, Sequence[Took]]) -> None:
    """Print how long calls took, and the goals: for all of them together, and for the slowest one."""
    waited = {name: [one.clock for one in found] for name, found in took.items()}
    rows = {name: (median(found), quantiles(found, n=20)[-1]) for name, found in waited.items()}
    print(f"\n| {what} | ms, half within | ms, 95 of 100 within | processor time, ms |\n|---|---|---|---|")
    for name, (half, most) in rows.items():
        busy = median(one.processor for one in took[name])
        print(f"| {name} | {half:.0f} | {most:.0f} | {busy:.0f} |", flush=True)
    print()
    every = [one for found in waited.values() for one in found]
    goal(CROWD, f"{what}: half within so many ms", round(median(every)), most=MEDIAN_MS)
    goal(CROWD, f"{what}: 95 of 100 within so many ms", round(quantiles(every, n=20)[-1]), most=MOST_MS)
    goal(CROWD, f"{what}, the slowest: half within so many ms", max(half for half, _ in rows.values()), most=MEDIAN_MS)
    goal(CROWD, f"{what}, the slowest: 95 of 100 so", max(most for _, most in rows.values()), most=MOST_MS)
