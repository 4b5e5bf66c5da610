"""The sandbox as one thing: its parts, how they start and stop, and the settings it shares with the product."""

import asyncio
import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from aiohttp import web

from sandbox.base.chain_table import CHAINS
from sandbox.base.sandbox import Sandbox
from sandbox.chains import Chains
from sandbox.discord import LocalDiscord
from sandbox.marketplaces import Marketplaces
from sandbox.solana import Solana

PRODUCT_ENV = Path(__file__).parents[1] / "product.env"
DEFAULT_PORT = 3210


class AlreadyRunning(Exception):
    """Another sandbox holds the data directory."""


class Part(Protocol):
    """What the whole sandbox needs of each part: Discord, the chains, Solana and the marketplaces."""

    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    async def reset(self) -> None: ...
    def renew_limits(self) -> None: ...
    def routes(self) -> Sequence[web.AbstractRouteDef]: ...


class WholeSandbox(Sandbox):
    """Everything in one sandbox process. `chains`, `solana` or `marketplaces` is None where it was left out.

    `without` may name `chains` (all of them), `evm` (all but Solana) and `marketplaces`.
    """

    def __init__(
        self,
        data: Path,
        port: int,
        without: frozenset[str] = frozenset(),
        *,
        strict: bool = False,
        public_url: str = "http://localhost:3000",
    ) -> None:
        super().__init__(data, port, product_settings(port), strict=strict, public_url=public_url)
        self.ready = asyncio.Event()
        self._lock_fd = -1
        self.discord = LocalDiscord(self)
        self.chains = None if {"chains", "evm"} & without else Chains(self)
        self.solana = None if "chains" in without else Solana(self)
        self.marketplaces = None if "marketplaces" in without else Marketplaces(self, self.chains, self.solana)

    def parts(self) -> list[Part]:
        """Return the parts in the order in which they start."""
        parts = (self.discord, self.chains, self.solana, self.marketplaces)
        return [part for part in parts if part is not None]

    async def start(self) -> None:
        """Start every part. Raises AlreadyRunning when another process owns the data directory."""
        self.data.mkdir(parents=True, exist_ok=True)
        self._lock_fd = os.open(self.data / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as held:
            raise AlreadyRunning(f"Another sandbox is running on {self.data}.") from held
        self.traffic.keep_in(self.data / "requests.jsonl")
        for part in self.parts():
            await part.start()
        self.ready.set()

    async def stop(self) -> None:
        """Stop every part, the last one first."""
        self.ready.clear()
        for part in reversed(self.parts()):
            await part.stop()
        os.close(self._lock_fd)

    async def reset(self) -> None:
        """Restore the content and ids of the start, and end every fault."""
        self.faults.clear()
        for part in self.parts():
            await part.reset()

    async def world(self) -> dict[str, Any]:
        """Return the answer to GET /control/world."""
        return {
            **await self.discord.world_view(),
            "chains": {
                **(await self.chains.world() if self.chains else {}),
                **({"solana": await self.solana.world()} if self.solana else {}),
            },
            "accounts": await self.marketplaces.world() if self.marketplaces else {},
        }

    def be_strict(self, strict: bool) -> None:
        """Give every provider the limits of a real one, or none. All windows start again."""
        self.strict = strict
        self.discord.restore_redirects()
        self.renew_limits()

    def renew_limits(self) -> None:
        """Start all windows again."""
        for part in self.parts():
            part.renew_limits()

    def limits(self) -> dict[str, Any]:
        """Return the answer to GET /control/limits."""
        return {
            "strict": self.strict,
            "discord": self.discord.limits_view(),
            "rpc": self.chains.limits() if self.chains else {},
            **(self.marketplaces.limits() if self.marketplaces else {}),
            **({"solana": self.solana.limits()} if self.solana and self.strict else {}),
        }


def product_settings(port: int) -> dict[str, str]:
    """Return the settings of `product.env` for a sandbox on this port, the line with {CHAIN} once for every chain."""
    settings: dict[str, str] = {}
    for line in PRODUCT_ENV.read_text().splitlines():
        if line and not line.startswith("#"):
            key, _, value = line.partition("=")
            value = value.strip('"').replace("${SANDBOX_PORT}", str(port))
            for chain in CHAINS if "{CHAIN}" in key else ("",):
                settings[key.replace("{CHAIN}", chain.upper())] = value.replace("{chain}", chain) if chain else value
    return settings
