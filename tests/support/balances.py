"""A balance question with one segment: every contract is asked about every owner."""

from collections.abc import Sequence

from gateways.chains.balance_sheet import BalanceSheet, Segment
from gateways.chains.read_point import NEWEST, ReadPoint
from gateways.evm.client import Chains


async def balances(
    chains: Chains, chain: str, contracts: Sequence[str], owners: Sequence[str], at: ReadPoint = NEWEST
) -> BalanceSheet:
    """Return how many tokens of each contract each owner holds."""
    (sheet,) = await chains.balances(chain, [Segment(tuple(contracts), tuple(owners))], at=at)
    return sheet
