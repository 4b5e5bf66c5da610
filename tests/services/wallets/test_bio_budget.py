"""Two hundred people prove a wallet by its bio within a simulated hour, on a free OpenSea key.

Only the wire, the people and the clock are fake. The client with its limit, the processes' sharing of it, and the
schedule of checks of a bio are the product's own.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from gateways.marketplaces.client import MarketWire
from gateways.marketplaces.opensea import OpenSea
from gateways.marketplaces.quota import SHARES, QuotaStanding, Use
from gateways.transport import corrected_clock
from gateways.transport.errors import ProviderBusy
from gateways.transport.fair_turns import on_behalf_of
from services.runtime.marketplace_limit_sharing import BEAT_SECONDS
from services.wallets import bio_schedule
from tests.gateways.clockwork import run

PEOPLE, LIMIT, HOUR = 200, 600, 3_600.0
SHOWN_LATE = (0.0, 0.0, 0.0, 20.0, 90.0)
"""Seconds after which OpenSea shows a saved bio; one person in five has to wait long."""
PATIENCE = 240.0
"""Seconds after which a person who sees no result presses the button again."""


class Key(httpx.AsyncBaseTransport):
    """OpenSea for one free key: LIMIT reads an hour, reported in the headers, and then 429."""

    def __init__(self) -> None:
        self.ends, self.left = 0.0, 0
        self.answered: Counter[str] = Counter()
        self.refused = 0
        self.bios: dict[str, tuple[float, str]] = {}

    def saves(self, address: str, bio: str, late: float) -> None:
        self.bios[address] = (now() + late, bio)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0.2)
        if now() >= self.ends:
            self.left, self.ends = LIMIT, now() + HOUR
        if self.left == 0:
            self.refused += 1
            return httpx.Response(429, headers=self._limits(), json={"errors": ["Request was throttled."]})
        self.left -= 1
        kind, _, rest = request.url.path.removeprefix("/api/v2/").partition("/")
        self.answered[kind] += 1
        if kind != "accounts":
            return httpx.Response(200, headers=self._limits(), json={"nfts": [], "collection": rest, "name": rest})
        shown_at, bio = self.bios.get(rest, (0.0, ""))
        account = {"address": rest, "bio": bio if now() >= shown_at else ""}
        return httpx.Response(200, headers=self._limits(), json=account)

    def _limits(self) -> dict[str, str]:
        limits = {"Limit": LIMIT, "Remaining": self.left, "Reset": self.ends}
        return {f"X-RateLimit-{name}": str(value) for name, value in limits.items()}


def now() -> float:
    return asyncio.get_running_loop().time()


@dataclass
class Town:
    """The people, and the three processes that read for them and for rules."""

    key: Key
    web: OpenSea
    bot: OpenSea
    jobs: OpenSea
    chance: random.Random
    proved: list[float] = field(default_factory=list)
    presses: int = 0
    refused: int = 0
    """Presses that led to no look for lack of reads."""

    async def share(self) -> None:
        """Share the limit between the processes, as `market_limits.keep` does through the database."""
        shared: dict[int, QuotaStanding] = {}
        while True:
            for client in (self.web, self.bot, self.jobs):
                shared |= {one.limit: one for one in client.quota.exchange(shared)}
            await asyncio.sleep(BEAT_SECONDS)

    async def rules(self) -> None:
        """Read for rules as much as they are allowed to."""
        while True:
            with on_behalf_of("server:1"):
                try:
                    await self.jobs.account_nfts("base", "0x1")
                except ProviderBusy as busy:
                    await asyncio.sleep(max(busy.retry_after or 1.0, 1.0))
            await asyncio.sleep(1)

    async def person(self, number: int) -> None:
        """Claim at a random time, save the code after some minutes, and press the button; some press too early."""
        chance, address = self.chance, f"0x{number:040x}"
        await asyncio.sleep(chance.uniform(0, HOUR - 900))
        on_web, early, saves_after = chance.random() < 0.5, chance.random() < 0.3, chance.uniform(30, 480)
        looks = bio_schedule.BioChecks(None) if on_web else bio_schedule.after_showing()
        pressed_early = chance.uniform(5, saves_after) if early else 0.0
        client = self.web if on_web else self.bot
        with on_behalf_of(f"user:{number}"):
            if early:
                looks = await self._waits(client, address, looks, pressed_early)
                looks = await self._press(client, address) or looks
            looks = await self._waits(client, address, looks, saves_after - pressed_early)
            self.key.saves(address, "holdfast-code", chance.choice(SHOWN_LATE))
            await asyncio.sleep(chance.uniform(1, 10))
            # Returning to the tab may be enough.
            there = on_web and await self._looks(client, address, Use.AGAIN) is True
            if not there:
                await asyncio.sleep(chance.uniform(1, 10))
            while not there and (left := await self._press(client, address)) is not None:
                there = await self._waits(client, address, left, PATIENCE) is None
        self.proved.append(now())

    async def _press(self, client: OpenSea, address: str) -> bio_schedule.BioChecks | None:
        """Ask for a look, and return the looks that are still to come, or None if the wallet was proved."""
        self.presses += 1
        found = await self._looks(client, address, Use.PROOF)
        if found is True:
            return None
        self.refused += isinstance(found, float)
        return bio_schedule.after_request(wait=found or 0.0, stretch=client.quota.outlook(Use.AGAIN).stretch)

    async def _waits(
        self, client: OpenSea, address: str, looks: bio_schedule.BioChecks | None, seconds: float
    ) -> bio_schedule.BioChecks | None:
        """Let the product check unasked for `seconds`; return the checks still to come, or None if it was proved."""
        ends = now() + seconds
        while looks is not None and looks.next_in is not None and now() + looks.next_in < ends:
            await asyncio.sleep(looks.next_in)
            found = await self._looks(client, address, Use.AGAIN)
            if found is True:
                return None
            looks = looks.after(wait=found or 0.0, stretch=client.quota.outlook(Use.AGAIN).stretch)
        await asyncio.sleep(max(0.0, ends - now()))
        return looks

    @staticmethod
    async def _looks(client: OpenSea, address: str, use: Use) -> float | bool:
        """Return whether the code is in the bio, or the seconds to wait if there was no look for lack of reads."""
        try:
            return "holdfast-code" in (await client.profile(address, use=use)).bio
        except ProviderBusy as busy:
            return max(busy.retry_after or 1.0, 1.0)


def simulate(work: Coroutine[Any, Any, None], monkeypatch: pytest.MonkeyPatch, key: Key) -> None:
    """Run the work on a clock that jumps, which also serves as the wall clock."""

    def client(_: MarketWire) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=key)

    monkeypatch.setattr(MarketWire, "_client", client)
    monkeypatch.setattr(corrected_clock, "_wall", lambda: datetime.fromtimestamp(now(), UTC))
    corrected_clock.forget()
    run(work)


@pytest.mark.parametrize("seed", range(3))
def test_two_hundred_people_prove_a_wallet_within_an_hour_and_rules_have_their_share(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = Key()

    async def hour() -> None:
        web, bot, jobs = clients = [OpenSea("http://opensea", "http://opensea", "key") for _ in range(3)]
        town = Town(key, web, bot, jobs, random.Random(seed))
        beside = [asyncio.create_task(work) for work in (town.share(), town.rules())]
        began = now()
        await asyncio.gather(*(town.person(number) for number in range(1, PEOPLE + 1)))
        assert now() - began <= HOUR, "everybody is through within the hour"
        await asyncio.sleep(max(0.0, began + HOUR - now() - 5))
        for one in beside:
            one.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
        for one in clients:
            await one.close()
        assert len(town.proved) == PEOPLE
        assert town.refused == 0, f"of {town.presses} presses"
        assert key.refused == 0, "nothing was sent past the limit"
        rules = key.answered["chain"]
        assert rules >= SHARES[Use.RULES] * LIMIT

    simulate(hour(), monkeypatch, key)
