"""Estimate how many calls a day following a chain costs, from its pace alone; `make doctor` compares them with plans.

`benchmarks/costs.py` counts the same calls while the follower works, and a test compares the estimate with the counts.
"""

from math import ceil

from gateways.chains.catalogue import Chain
from gateways.evm.rpc.node import CHAIN_AGAIN
from services.health.provider_records import PROBED_UNFOLLOWED
from services.triggers.transfer_poller import AT_ONCE, SOONEST_SECONDS

DAY = 86_400


def calls_a_day(chain: Chain, seconds: float, log_blocks: int | None, *, socket: bool = False) -> dict[str, float]:
    """Return the calls a day to all nodes of an EVM chain whose contracts are followed, by method.

    `seconds` is the time between two polls; 0 means that the chain is left to sweeps and only Health asks its nodes.
    `log_blocks` is how many blocks a request for logs may span, None without a limit. With `socket` a node announces
    new blocks.
    """
    if not seconds:
        probes = DAY / PROBED_UNFOLLOWED.total_seconds()
        return {"eth_chainId": probes, "eth_getBlockByNumber": probes}
    blocks = DAY / chain.block_seconds
    polls = DAY / seconds
    if socket:
        polls = min(polls + blocks, max(polls, DAY / SOONEST_SECONDS))
    # A poll reads nothing if the newest block has already been read twice.
    readings = min(polls, 2 * blocks)
    settled = min(polls, blocks)
    # Unsettled blocks are read again: those since the previous poll, and those that lacked confirmations then.
    since = max(1, blocks / polls)
    span = 2 * since + (chain.confirmations if chain.confirmations > since else 0)
    turns = ceil(span / AT_ONCE)
    return {
        "eth_chainId": min(DAY / CHAIN_AGAIN, polls),
        "eth_getBlockByNumber": turns * (polls + readings + settled),
        "eth_getLogs": readings * ceil(span / min(log_blocks or AT_ONCE, AT_ONCE)),
    }
