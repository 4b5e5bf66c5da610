"""The EVM chains: real nodes behind front ends on which faults act, and metadata for their tokens."""

import asyncio
from typing import Any

from aiohttp import web

from sandbox.base.chain_table import CHAINS
from sandbox.base.sandbox import Sandbox
from sandbox.chains import control, metadata, replay, rpc
from sandbox.chains.chain import Chain
from sandbox.chains.plans import PLANS, UNLIMITED
from sandbox.tools import USUAL_TOOLS, find_anvil, obtain


class Chains:
    """All chains of a sandbox; `by_name` is empty until `start`."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.by_name: dict[str, Chain] = {}
        self._keepers: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start all nodes at once, and again whenever one ends, installing the node first if it is missing.

        Raises ToolMissing when no node can be obtained, and NodeGone when one does not start.
        """
        # Next to the sandbox's data, where the set-up installs it, or in the usual place.
        binary = find_anvil(self.sandbox.data.parent / "tools", USUAL_TOOLS)
        if binary is None:
            binary = await asyncio.to_thread(obtain, USUAL_TOOLS, lambda line: print(f"sandbox: {line}", flush=True))
        data = self.sandbox.data / "chains"
        data.mkdir(parents=True, exist_ok=True)
        for facts in CHAINS.values():
            self.by_name[facts.name] = Chain(facts, self.sandbox.url, data, binary)
        self.renew_limits()
        try:
            await asyncio.gather(*(replay.start(chain) for chain in self.by_name.values()))
        except BaseException:
            await self.stop()
            raise
        self._keepers = [asyncio.create_task(replay.keep_running(chain)) for chain in self.by_name.values()]

    async def stop(self) -> None:
        """Stop the nodes."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        await asyncio.gather(*(chain.node.stop() for chain in self.by_name.values()))
        for chain in self.by_name.values():
            chain.journal.close()
        self.by_name.clear()

    async def reset(self) -> None:
        """Restore the content, contracts and traits of the start, in new blocks."""

        async def one(chain: Chain) -> None:
            async with chain.reachable():
                await replay.reset(chain)

        await asyncio.gather(*map(one, self.by_name.values()))

    async def restarted(self) -> None:
        """Wait while a node starts again, for its collections come back one by one. Raises Refusal(503)."""
        for chain in self.by_name.values():
            await chain.restarted()

    async def world(self) -> dict[str, Any]:
        """Return the `chains` of GET /control/world."""
        worlds = await asyncio.gather(*(chain.world() for chain in self.by_name.values()))
        return dict(zip(self.by_name, worlds, strict=True))

    def renew_limits(self) -> None:
        """Give each chain's nodes the plan of a real provider, or none where the sandbox is not strict."""
        for name, chain in self.by_name.items():
            chain.plan = PLANS.get(name, UNLIMITED) if self.sandbox.strict else UNLIMITED

    def limits(self) -> dict[str, Any]:
        """Return the chains' part of GET /control/limits: the limits of both front ends of each chain."""
        return {name: chain.plan.view() for name, chain in self.by_name.items()}

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of /rpc, /rpc2, /metadata and /control/chains."""
        return [
            *rpc.routes(self.sandbox, self.by_name),
            *metadata.routes(self.sandbox, self.by_name),
            *control.routes(self.by_name),
        ]
