"""Solana as a part of the sandbox: a simulated ledger, and what the sandbox and a marketplace ask of it."""

from typing import Any

from sandbox.base.budget import Budget
from sandbox.base.sandbox import Sandbox
from sandbox.chains.seeds import Collection
from sandbox.solana import das
from sandbox.solana.accounts import SCANS_A_SECOND
from sandbox.solana.ledger import Ledger, wall_clock

CHAIN_ID = 101
"""The chain id that wallets use for mainnet."""


class SolanaChain:
    """The chain without its HTTP. Call `start` before anything else.

    For a marketplace it has what an EVM chain has: `collections`, `collections_at`, `owners`, `head_at`. Token ids are
    mint addresses, and a block is a slot.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self._ledger: Ledger | None = None
        self.lists: Budget | None = None
        """How many lists the index still answers in this second, where it has a limit."""
        self.scans: Budget | None = None
        """The same for getProgramAccounts."""
        self.renew_limits()

    @property
    def ledger(self) -> Ledger:
        """The open ledger."""
        if self._ledger is None:
            raise RuntimeError("Solana's ledger is not open.")
        return self._ledger

    def renew_limits(self) -> None:
        """Limit lists and scans as a free plan does, or lift the limits where the sandbox is not strict."""
        self.lists = Budget(das.LISTS_A_SECOND, 1.0) if self.sandbox.strict else None
        self.scans = Budget(SCANS_A_SECOND, 1.0) if self.sandbox.strict else None

    @staticmethod
    def limits() -> dict[str, int]:
        """Return the limits of a strict sandbox, as in GET /control/limits."""
        return {"lists_a_second": das.LISTS_A_SECOND, "scans_a_second": SCANS_A_SECOND}

    async def start(self) -> None:
        """Read the ledger."""
        self._ledger = Ledger(self.sandbox.data / "chains" / "solana.jsonl")

    async def stop(self) -> None:
        """Close the journal."""
        self.ledger.close()
        self._ledger = None

    async def reset(self) -> None:
        """Restore the state of the start, in a later slot."""
        self.ledger.reset()

    async def world(self) -> dict[str, Any]:
        """Return Solana's part of the `chains` of GET /control/world."""
        return {
            "rpc": f"{self.sandbox.url}/solana",
            "chain_id": CHAIN_ID,
            "block": self.ledger.slots.now(),
            "collections": self.ledger.collections_shown(),
        }

    @property
    def collections(self) -> dict[str, Collection]:
        """Address → listed collection; its traits are by mint address."""
        return self.ledger.present.collections

    def collections_at(self, slot: int | None = None) -> dict[str, Collection]:
        """Return the listed collections and their traits, now or as of a slot."""
        return self.ledger.holdings(slot).collections

    async def owners(self, slot: int | None = None) -> dict[str, dict[str, dict[str, int]]]:
        """Return collection → mint address → owner → 1, now or as of a slot."""
        return self.ledger.owners(slot)

    def head_at(self, moment: float) -> int:
        """Return the slot at a moment of the monotonic clock."""
        return self.ledger.slots.at(wall_clock(moment))

    def collection(self, named: str) -> Collection:
        """Return a listed collection by address, slug or name. Raises Refusal(404)."""
        return self.ledger.collection(named)
