"""Counts of assets and amounts of coins in the form of an EVM chain's balances."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gateways.chains.balance_sheet import BalanceSheet, Cells
from gateways.chains.token_sheet import TokenSheet
from gateways.evm.rpc.node import Head
from gateways.solana.node import SOLANA, SolanaNode


@dataclass(frozen=True, slots=True)
class SolanaBalances(BalanceSheet):
    """A BalanceSheet whose addresses are Solana's; an amount is a count of assets, or a coin's.

    `coins` has coin → owner → amount, without the owners whose amount is unknown; `doubts` has coin → owner → why, of
    those of whom the node said so.
    """

    sheets: Mapping[str, TokenSheet] = field(default_factory=dict[str, TokenSheet])
    asked: frozenset[str] = frozenset()
    coins: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    doubts: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])

    @property
    def owner_count(self) -> int:
        """How many owners were asked about."""
        return len(self.asked)

    def amount(self, contract: str, owner: str) -> int | None:
        """How many the owner held; None is *unknown* (also for a collection or owner that was not asked about)."""
        if owner not in self.asked:
            return None
        if (amounts := self.coins.get(contract)) is not None:
            return amounts.get(owner)
        sheet = self.sheets.get(contract)
        if sheet is None or owner in sheet.unsure:
            return None
        return len(sheet.of(owner))

    def doubt(self, contract: str, owner: str) -> str | None:
        """Why the owner's amount is unknown; None where it was not read in time."""
        sheet = self.sheets.get(contract)
        doubts = self.doubts.get(contract) if sheet is None else sheet.unsure
        return doubts.get(owner) if doubts else None

    def holders(self, contract: str) -> Iterator[tuple[str, int]]:
        """The owners known to hold some, with how many."""
        for owner, amount in self.coins.get(contract, {}).items():
            if amount and owner in self.asked:
                yield owner, amount
        sheet = self.sheets.get(contract)
        for owner, tokens in sheet.held.items() if sheet else ():
            if owner in self.asked:
                yield owner, len(tokens)

    def unknown(self, contract: str) -> int:
        """How many of the owners' amounts are unknown."""
        if (amounts := self.coins.get(contract)) is not None:
            return len(self.asked - amounts.keys())
        sheet = self.sheets.get(contract)
        return self.owner_count if sheet is None else len(self.asked & sheet.unsure.keys())


def balances_of(
    node: SolanaNode,
    slot: int,
    head: Head,
    sheets: Mapping[str, TokenSheet],
    owners: Sequence[str],
    coins: Mapping[str, Mapping[str, int]],
    doubts: Mapping[str, Mapping[str, str]] | None = None,
) -> SolanaBalances:
    """The sheets and coins of one endpoint as one, as of a slot."""
    return SolanaBalances(
        chain=SOLANA.key,
        block=slot,
        block_time=head.time,
        endpoint=node.index,
        source=node.source,
        contracts=b"",
        owners=b"",
        cells=Cells(0, 0),
        sheets=sheets,
        asked=frozenset(owners),
        coins=coins,
        doubts=doubts or {},
    )
