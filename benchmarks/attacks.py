"""Attacks by strangers, and their effect on everybody else: `python -m benchmarks.attacks [--quick] [NAME …]`.

The whole product runs as `make run` starts it, with its default limits. During each attack in
`benchmarks/support/attacks.py` an admin's page, `/health` and a role that follows a token are timed, and Discord's
requests and the web process's memory are measured. The same is done without an attack just before it.
"""

import asyncio
import json
import re
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
from websockets.exceptions import ConnectionClosed

from benchmarks.support.attacks import ATTACKS, Target, greeted
from benchmarks.support.nft_chain import ROOT
from benchmarks.support.rounds import goal, options
from tests.support.product import DAY, Machine, Product, build_screens, members_of_session
from tests.system.web.conftest import sign_in
from tests.system.web.sockets import BOOT
from tests.system.whole.people import Person, collection, rule

NAME = "attacks"
GUILD, ROLE = "Base Builders", "Whale"
ADMIN, BAD_ADMIN = "ada", "bob"
HEALTH_EVERY, PAGE_EVERY = 0.1, 0.5
"""Seconds between two measurements; each page uses some of the admin's 300 reads a minute."""
ROLES, ROLE_SECONDS = 2, 60
MOST_MS, MOST_PER_SECOND, MOST_MB = 500, 10, 150
_ROLE = re.compile(r"/members/(\d+)/roles/")
STAYED = "the attacker did not stop"
REPLY = ("/interactions/", "/webhooks/")
"""Requests that Discord does not count against a bot."""


@dataclass
class AttackPhase:
    """Other people's measurements in one phase: times in milliseconds, a role's in seconds."""

    name: str
    health: list[float] = field(default_factory=list[float])
    page: list[float] = field(default_factory=list[float])
    roles: list[float] = field(default_factory=list[float])
    faults: list[str] = field(default_factory=list[str])
    discord: int = 0
    seconds: float = 0.0
    before: float = 0.0
    most: float = 0.0
    log: float = 0.0
    said: str = ""
    calm: "AttackPhase | None" = None
    """The measurements right before the attack."""

    @property
    def rate(self) -> float:
        """Discord's requests a second, without those of the measuring visits."""
        before = 0.0 if self.calm is None else self.calm.discord / self.calm.seconds
        return max(0.0, self.discord / self.seconds - before)

    @property
    def grown(self) -> float:
        """Growth of the web process in megabytes."""
        return self.most - self.before


class Siege:
    """A running product, and the people who only want to use it."""

    def __init__(self, machine: Machine, seconds: float) -> None:
        self._machine, self._seconds = machine, seconds
        self._product: Product = machine.product
        self._next, self._number, self._token = 0, 0, 1
        self.over = asyncio.Event()
        self._client: aiohttp.ClientSession
        self._written: set[str] = set()

    def settle_in(self) -> None:
        """Sign people in, prove a wallet, make a rule."""
        product = self._product
        ada = Person(product, ADMIN)
        self._contract = collection(product, "Besieged")
        self._server_id = ada.server(GUILD)["internalId"]
        ada.post("/api/verification-rules", **rule(product, self._contract, GUILD, ROLE, self._server_id))
        self._session = next(iter(ada.client.cookies.values()))
        self._bad_admin = sign_in(product.url, BAD_ADMIN)
        self._role_id = product.role(GUILD, ROLE)
        ada.close()

    async def phase(self, name: str | None, calm: AttackPhase | None = None) -> AttackPhase:
        """Use the product for some seconds during this attack, or half as long without one."""
        seen = AttackPhase(name or "none", calm=calm)
        target = await asyncio.to_thread(self._target)
        holders = await asyncio.to_thread(self._holders)
        await self._requests(AttackPhase(""))
        self.over.clear()
        size = self._machine.log.stat().st_size
        seen.before = seen.most = self._megabytes()
        began = time.monotonic()
        headers = {"X-Forwarded-For": "198.51.100.7"}
        async with aiohttp.ClientSession(headers=headers, timeout=aiohttp.ClientTimeout(total=60)) as self._client:
            probes = [
                asyncio.create_task(one)
                for one in (
                    self._again(seen, seen.health, HEALTH_EVERY, self._health),
                    self._again(seen, seen.page, PAGE_EVERY, self._call),
                    self._screens(seen), self._roles(seen, holders),
                )
            ]  # fmt: skip
            counting = asyncio.create_task(self._counts(seen))
            try:
                seen.said = await self._attack(name, target) if name else await asyncio.sleep(self._seconds / 2, "")
                seen.seconds = time.monotonic() - began
                if seen.said == STAYED:
                    seen.faults.append(STAYED)
                self.over.set()
                await asyncio.wait_for(asyncio.gather(*probes), 150)
            finally:
                for task in (*probes, counting):
                    task.cancel()
        seen.log = (self._machine.log.stat().st_size - size) / 1e6
        return seen

    def _target(self) -> Target:
        """Return a fresh account at a fresh address, so that every attack has all that its limits allow."""
        username, person = self._newcomer("mallory")
        session = sign_in(self._product.url, username)
        return Target(
            self._product.url, self._product.sandbox, f"203.0.113.{self._number}", self._seconds, username, session,
            person["wallets"]["evm"], self._bad_admin, GUILD, self._server_id, self._contract, self._role_id,
        )  # fmt: skip

    def _holders(self) -> dict[str, str]:
        """Create members with a proved wallet and no tokens; return each one's wallet by Discord id."""
        found: dict[str, str] = {}
        for _ in range(ROLES):
            username, person = self._newcomer("holder")
            member = Person(self._product, username)
            member.prove()
            member.close()
            found[person["id"]] = person["wallets"]["evm"]
        return found

    def _newcomer(self, name: str) -> tuple[str, dict[str, Any]]:
        self._number += 1
        username = f"{name}{self._number}"
        person = self._product.control("people", {"username": username})
        self._product.control("members", {"guild": GUILD, "user": username, "action": "join"})
        return username, person

    async def _attack(self, name: str, target: Target) -> str:
        process = await asyncio.create_subprocess_exec(
            "nice", sys.executable, "-m", "benchmarks.support.attacks", name, cwd=ROOT,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            told, _ = await asyncio.wait_for(
                process.communicate(json.dumps(asdict(target)).encode()), self._seconds + 90
            )
        except TimeoutError:
            return STAYED
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return told.decode().strip()

    async def _again(
        self, seen: AttackPhase, took: list[float], every: float, once: Callable[[], Awaitable[None]]
    ) -> None:
        while not self.over.is_set():
            began = time.perf_counter()
            try:
                await once()
            except (aiohttp.ClientError, TimeoutError, ConnectionClosed) as fault:
                seen.faults.append(f"{once.__name__}: {fault}"[:80])
            took.append(1000 * (time.perf_counter() - began))
            await asyncio.sleep(every)

    async def _health(self) -> None:
        async with self._client.get(f"{self._product.url}/health") as answer:
            answer.raise_for_status()
            await answer.read()

    async def _call(self) -> None:
        url = f"{self._product.url}/api/verification-rules?serverId={self._server_id}"
        async with self._client.get(url, headers={"Cookie": f"hf_session={self._session}"}) as answer:
            answer.raise_for_status()
            await answer.read()

    async def _screens(self, seen: AttackPhase) -> None:
        """Time the same server's page by the socket, in one tab."""
        place = f"/dashboard/server/{self._server_id}"
        headers = {"X-Forwarded-For": "198.51.100.7", "Cookie": f"hf_session={self._session}"}
        async with greeted(self._product.url, headers) as browser:

            async def load() -> None:
                await browser.event(BOOT, place=place)
                await browser.until('"is_hydrated_rx_state_":true')

            await self._again(seen, seen.page, PAGE_EVERY, load)

    async def _roles(self, seen: AttackPhase, wallets: Mapping[str, str]) -> None:
        """Move tokens to members one after the other, and measure how long each role takes.

        Each member is a new one: a token that moves back and forth is reconciled at growing intervals.
        """
        for member, wallet in wallets.items():
            self._token += 1
            token = {"contract": self._contract, "token_id": str(self._token), "to": wallet}
            began = time.monotonic()
            await asyncio.to_thread(self._product.control, "chains/base/mint", token)
            while member not in self._written:
                if time.monotonic() > began + ROLE_SECONDS:
                    seen.faults.append(f"no role in {ROLE_SECONDS} s")
                    break
                await asyncio.sleep(0.05)
            seen.roles.append(time.monotonic() - began)

    async def _counts(self, seen: AttackPhase) -> None:
        """Return the number of requests to Discord, and the size of the web process."""
        while True:
            await self._requests(seen)
            seen.most = max(seen.most, self._megabytes())
            await asyncio.sleep(0.25)

    async def _requests(self, seen: AttackPhase) -> None:
        found: dict[str, Any] = await asyncio.to_thread(self._product.control, f"requests?since={self._next}")
        self._next = found["next"]
        for one in found["requests"]:
            if one["target"] != "discord" or any(part in one["path"] for part in REPLY):
                continue
            seen.discord += not self.over.is_set()
            if one["method"] == "PUT" and one["status"] < 300 and (found_in := _ROLE.search(one["path"])):
                self._written.add(found_in[1])

    def _megabytes(self) -> float:
        """Return the memory of the web's processes in megabytes."""
        assert self._machine.process is not None
        return sum(_resident(pid) for pid in members_of_session(self._machine.process.pid))


def _resident(pid: int) -> float:
    try:
        if b"app.supervisor.granian_command" not in Path(f"/proc/{pid}/cmdline").read_bytes():
            return 0.0
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:  # it has ended
        return 0.0
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def machine(directory: Path) -> Machine:
    """Start the product with the limits of a live one, behind a proxy that names the caller."""
    made = Machine(directory, DAY)
    for name in [one for one in made.environment if one.startswith("LIMIT_")]:
        del made.environment[name]
    made.environment["TRUSTED_PROXIES"] = "127.0.0.1"
    return made


async def measure(running: Machine, names: Sequence[str], seconds: float) -> list[AttackPhase]:
    """Measure every attack after a phase without one."""
    siege = Siege(running, seconds)
    await asyncio.to_thread(siege.settle_in)
    found: list[AttackPhase] = []
    for name in names:
        seen = await siege.phase(name, await siege.phase(None))
        found.append(seen)
        print(f"{seen.name}: {seen.said} {sorted(set(seen.faults))[:3] or ''}", file=sys.stderr, flush=True)
        print(row(seen), file=sys.stderr, flush=True)
    return found


def within(took: Sequence[float]) -> float:
    """Return the milliseconds within which 95 of 100 were answered."""
    return quantiles(took, n=20, method="inclusive")[-1]


def row(seen: AttackPhase) -> str:
    """Return one row of the table: the measurements just before the attack, then during it."""
    calm = seen.calm
    assert calm is not None
    times = " | ".join(
        f"{within(before):.0f} | {within(took):.0f} ({max(took):.0f})"
        for before, took in ((calm.health, seen.health), (calm.page, seen.page))
    )
    verdict = ", ".join(missed(seen)) or "no harm"
    return (
        f"| {seen.name.replace('_', ' ')} | {times} | {max(seen.roles):.1f} | {seen.rate:.1f} | {seen.grown:.0f} "
        f"| {seen.log:.2f} | {verdict} |"
    )


def missed(seen: AttackPhase) -> list[str]:
    """Return the goals that an attack broke; delays of the machine itself do not count."""
    calm = seen.calm
    assert calm is not None
    broken = {
        "health": within(seen.health) > max(MOST_MS, 2 * within(calm.health)),
        "page": within(seen.page) > max(MOST_MS, 2 * within(calm.page)),
        "roles": max(seen.roles) >= ROLE_SECONDS,
        "Discord": seen.rate > MOST_PER_SECOND,
        "memory": seen.grown > MOST_MB,
        "faults": bool(seen.faults),
    }
    return [name for name, is_broken in broken.items() if is_broken]


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = options("attacks", __doc__, quick="8 seconds of each instead of 20")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(ATTACKS)}; all when none is named")
    given = parser.parse_args(arguments)
    if unknown := sorted(set(given.names) - set(ATTACKS)):
        parser.error(f"there is no attack {unknown[0]!r}")
    with TemporaryDirectory(prefix="hf-bench-", dir="/tmp") as directory:
        running = machine(Path(directory))
        build_screens()
        try:
            running.start()
            found = asyncio.run(measure(running, given.names or list(ATTACKS), 8 if given.quick else 20))
        finally:
            running.stop()
    print(
        "\n| attack | /health before, ms, 95 of 100 | during it (most) | an admin's page before | during it (most) "
        "| slowest role, s | requests to Discord a second | MB grown | MB of log | |\n"
        "|---|---|---|---|---|---|---|---|---|---|"
    )
    for seen in found:
        print(row(seen))
    print()
    goal(NAME, "/health: 95 of 100 within so many ms", max(within(one.health) for one in found), most=MOST_MS)
    goal(NAME, "an admin's page: 95 of 100 within so many ms", max(within(one.page) for one in found), most=MOST_MS)
    goal(NAME, "a role follows its token within so many s", max(max(one.roles) for one in found), most=ROLE_SECONDS)
    goal(NAME, "requests to Discord a second", max(one.rate for one in found), most=MOST_PER_SECOND)
    goal(NAME, "the web process grows by so many MB", max(one.grown for one in found), most=MOST_MB)
    goal(NAME, "attacks that harm somebody", sum(bool(missed(one)) for one in found), most=0)


if __name__ == "__main__":
    main(sys.argv[1:])
