"""Solana: a simulated ledger, a node and an index in front of it, and metadata for its assets."""

from aiohttp import web

from sandbox.solana import control, metadata, names, rpc
from sandbox.solana.chain import SolanaChain


class Solana(SolanaChain):
    """The chain as a part of the sandbox."""

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of /solana with its names, /metadata/solana and /control/chains/solana."""
        return [*rpc.routes(self), *names.routes(self), *metadata.routes(self), *control.routes(self)]
