"""The admin on the web: signed in once, and still recognised after outages of the web, the bot or the database."""

import asyncio
import time
from urllib.parse import parse_qs, urlsplit

import httpx

from tests.system.soak.expected_roles import SoakRule

FOR_NOW = {502, 503}
"""The statuses that a call may have while a provider or the database is faulty."""
BACK_WITHIN = 150.0
"""Seconds within which the web is back once the faults are over, on a busy machine."""


class Visitor:
    """Calls by a person who has signed in, sent to `web`."""

    def __init__(self, web: str, person: str) -> None:
        self.web, self.person, self.session = web, person, ""
        self.calls, self.unanswered = 0, 0

    async def sign_in(self) -> None:
        """Sign in through Discord as a browser does, waiting for the web."""
        await self.healthy()
        async with httpx.AsyncClient(timeout=60) as browser:
            discord = (await browser.get(f"{self.web}/api/auth/discord")).headers["location"]
            back = (await browser.get(f"{discord}&as={self.person}")).headers["location"]
            home = (await browser.get(back)).headers["location"]
        self.session = parse_qs(urlsplit(home).query)["session"][0]

    async def healthy(self) -> None:
        """Wait until `/health` reports that everything works."""
        last, until = "nothing", time.monotonic() + BACK_WITHIN
        while time.monotonic() < until:
            try:
                async with httpx.AsyncClient(timeout=10) as client:
                    answer = await client.get(f"{self.web}/health")
            except httpx.TransportError as fault:
                last = repr(fault)
            else:
                last = answer.text
                if answer.status_code == 200:
                    return
            await asyncio.sleep(0.1)
        raise AssertionError(f"the web is not back: {last}")

    async def look(self, server_id: int) -> list[str]:
        """Make two signed-in calls during faults; return the answers that are wrong even then."""
        said: list[str] = []
        for path in ("/api/auth/user", f"/api/verification-rules?serverId={server_id}"):
            self.calls += 1
            try:
                answer = await self._get(path)
            except httpx.TransportError:
                self.unanswered += 1
                continue
            if answer.status_code != 200 and answer.status_code not in FOR_NOW:
                said.append(f"the web answered {path} with {answer.status_code}: {answer.text[:300]}")
        return said

    async def sees(self, soak_rules: list[SoakRule], servers: list[int]) -> list[str]:
        """Return the faults once all is well again: the person is still signed in and sees exactly these rules."""
        await self.healthy()
        user = await self._get("/api/auth/user")
        if user.status_code != 200 or user.json()["username"] != self.person:
            return [f"the admin is not signed in any more: {user.status_code} {user.text[:300]}"]
        shown: set[tuple[int, str]] = set()
        for server in servers:
            answer = await self._get(f"/api/verification-rules?serverId={server}")
            if answer.status_code != 200:
                return [f"the web does not show the rules: {answer.status_code} {answer.text[:300]}"]
            shown |= {(rule["id"], rule["roleId"]) for rule in answer.json()}
        there = {(soak_rule.id, soak_rule.role) for soak_rule in soak_rules}
        return [] if shown == there else [f"the web shows the rules {sorted(shown)}, but there are {sorted(there)}"]

    async def _get(self, path: str) -> httpx.Response:
        async with httpx.AsyncClient(timeout=30) as client:
            return await client.get(f"{self.web}{path}", headers={"x-session-id": self.session})
