"""Counts of assets and amounts of coins, in the same form as an EVM chain's balances."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gateways.chains.balance_sheet import BalanceSheet, Cells
from gateways.chains.token_sheet import TokenSheet
from gateways.evm.rpc.node import Head
from gateways.solana.node import SOLANA, SolanaNode


@dataclass(frozen=True, slots=True)
class SolanaBalances(BalanceSheet):
    """A BalanceSheet with Solana addresses; an amount is a count of assets, or an amount of a coin.

    `coins` maps coin → owner → amount, without the owners whose amount is unknown. `doubts` maps coin → owner → the
    reason why the amount is unknown, where the node gave one.
    """

    sheets: Mapping[str, TokenSheet] = field(default_factory=dict[str, TokenSheet])
    asked: frozenset[str] = frozenset()
    coins: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    doubts: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])

    @property
    def owner_count(self) -> int:
        """The number of owners in the question."""
        return len(self.asked)

    def amount(self, contract: str, owner: str) -> int | None:
        """Return the owner's amount; None is *unknown*, also for a collection or owner that was not in the question."""
        if owner not in self.asked:
            return None
        if (amounts := self.coins.get(contract)) is not None:
            return amounts.get(owner)
        sheet = self.sheets.get(contract)
        if sheet is None or owner in sheet.unsure:
            return None
        return len(sheet.of(owner))

    def doubt(self, contract: str, owner: str) -> str | None:
        """Return why the owner's amount is unknown; None where it was not read in time."""
        sheet = self.sheets.get(contract)
        doubts = self.doubts.get(contract) if sheet is None else sheet.unsure
        return doubts.get(owner) if doubts else None

    def holders(self, contract: str) -> Iterator[tuple[str, int]]:
        """Yield each owner known to hold some, with the amount."""
        for owner, amount in self.coins.get(contract, {}).items():
            if amount and owner in self.asked:
                yield owner, amount
        sheet = self.sheets.get(contract)
        for owner, tokens in sheet.held.items() if sheet else ():
            if owner in self.asked:
                yield owner, len(tokens)

    def unknown(self, contract: str) -> int:
        """Return the number of owners whose amount is unknown."""
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
    """Combine the sheets and coins from one endpoint into one, as of a slot."""
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
