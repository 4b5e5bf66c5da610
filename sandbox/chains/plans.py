"""The plans of real nodes: how many blocks, logs and calls each allows, and the words with which it refuses more."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

STATES = 128
"""Blocks whose state a full node keeps, under every plan."""


@dataclass(frozen=True)
class Denial:
    """A JSON-RPC error (`code`, `message`, `data` where such nodes send it) and the HTTP status that it comes with."""

    error: dict[str, Any]
    status: int = 200
    in_a_list: bool = False
    """Whether a batch is refused with a list of one answer, and not with an answer without a list."""


OfRange = Callable[[int, int, int], Denial]
"""The refusal of a log filter, from its first and last block (both included) and the most that is allowed."""


@dataclass(frozen=True)
class Plan:
    """The limits of one chain's nodes; None means no limit. `blocks` counts both ends of a range of logs."""

    like: str
    """The provider that has these limits."""
    blocks: int | None = None
    too_wide: OfRange | None = None
    results: int | None = None
    too_many: OfRange | None = None
    needs_address: bool = False
    batch: int | None = None
    batch_denied: Callable[[int], Denial] | None = None
    overrides: bool = True
    """Whether eth_call accepts a state override."""
    finalized: bool = True
    """Whether the node knows the tags `safe` and `finalized`."""

    def view(self) -> dict[str, Any]:
        """Return the plan as in GET /control/limits."""
        return {
            "like": self.like,
            "log_blocks": self.blocks,
            "log_results": self.results,
            "logs_need_address": self.needs_address,
            "batch": self.batch,
            "state_override": self.overrides,
            "finalized": self.finalized,
            "states": STATES,
        }


# The words and codes below are as clients of these nodes have reported them.


def _free_alchemy(first: int, last: int, most: int) -> Denial:
    said = (
        f"Under the Free tier plan, you can make eth_getLogs requests with up to a {most} block range. "
        f"Based on your parameters, this block range should work: [{hex(first)}, {hex(first + most - 1)}]. "
        "Upgrade to PAYG for expanded block range."
    )
    return Denial({"code": -32600, "message": said}, 400)


def _reth(first: int, last: int, most: int) -> Denial:
    return Denial({"code": -32602, "message": f"query exceeds max block range {most}"})


def _base(first: int, last: int, most: int) -> Denial:
    return Denial({"code": -32614, "message": f"eth_getLogs is limited to a {most:,} range"})


def _free_drpc(first: int, last: int, most: int) -> Denial:
    return Denial({"code": 35, "message": f"ranges over {most} blocks are not supported on freetier"}, 400)


def _publicnode(first: int, last: int, most: int) -> Denial:
    return Denial({"code": -32701, "message": f"exceed maximum block range: {most}"})


def _infura(first: int, last: int, most: int) -> Denial:
    works = {"from": hex(first), "limit": most, "to": hex((first + last) // 2)}
    said = f"query returned more than {most} results. Try with this block range [{works['from']}, {works['to']}]."
    return Denial({"code": -32005, "data": works, "message": said})


def _zksync(first: int, last: int, most: int) -> Denial:
    works = f"[{hex(first)}, {hex((first + last) // 2)}]"
    said = f"Query returned more than {most} results. Try with this block range {works}."
    return Denial({"code": -32602, "message": said})


def _batch_of_free_drpc(most: int) -> Denial:
    said = (
        f"Batch of more than {most} requests are not allowed on free tier, "
        "to use this feature register paid account at drpc.org"
    )
    return Denial({"code": 31, "message": said}, 500)


def _batch_of_base(most: int) -> Denial:
    return Denial({"code": -32014, "message": f"maximum {most} calls in 1 batch"})


def _batch_of_geth(most: int) -> Denial:
    return Denial({"code": -32600, "message": "batch too large"}, in_a_list=True)


NEEDS_ADDRESS = Denial(
    {
        "code": -32701,
        "message": "Please specify an address in your request or, to remove restrictions, "
        "order a dedicated full node here: https://www.allnodes.com/eth/host",
    }
)
NO_OVERRIDE = Denial({"code": -32602, "message": "too many arguments, want at most 2"})

PLANS = {
    "ethereum": Plan("publicnode", 50_000, _publicnode, needs_address=True, batch=100, batch_denied=_batch_of_geth),
    "polygon": Plan("drpc, free", 10_000, _free_drpc, batch=3, batch_denied=_batch_of_free_drpc, overrides=False),
    "arbitrum": Plan("Alchemy, free", 10, _free_alchemy, batch=100, batch_denied=_batch_of_geth),
    "optimism": Plan("Infura", results=10_000, too_many=_infura, batch=10, batch_denied=_batch_of_base),
    "base": Plan("mainnet.base.org", 10_000, _base, batch=10, batch_denied=_batch_of_base),
    "apechain": Plan("reth", 500, _reth, batch=3, batch_denied=_batch_of_free_drpc, finalized=False),
    "abstract": Plan("ZKsync", results=10_000, too_many=_zksync, batch=100, batch_denied=_batch_of_geth),
}
"""Chain → its nodes' plan when the sandbox is strict. Other chains have UNLIMITED, a node of one's own."""
UNLIMITED = Plan("a node of one's own")


def logs_denied(plan: Plan, wanted: dict[str, Any], first: int, last: int) -> Denial | None:
    """Return the node's refusal of a filter before it looks for logs; None where it looks."""
    if plan.needs_address and not wanted.get("address"):
        return NEEDS_ADDRESS
    if plan.blocks is not None and plan.too_wide is not None and last - first + 1 > plan.blocks:
        return plan.too_wide(first, last, plan.blocks)
    return None


def results_denied(plan: Plan, found: int, first: int, last: int) -> Denial | None:
    """Return the node's refusal of so many logs; None where it returns them."""
    if plan.results is not None and plan.too_many is not None and found > plan.results:
        return plan.too_many(first, last, plan.results)
    return None
