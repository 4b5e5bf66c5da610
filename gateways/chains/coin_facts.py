"""What a coin states, read by `gateways/evm/tokens/contract_info.py` and `gateways/solana/coins.py`."""

from dataclasses import dataclass

MOST_DECIMALS = 36
"""Coins usually have 18 decimals. The amounts of one that names far more mean nothing."""


@dataclass(frozen=True, slots=True)
class CoinFacts:
    """A coin's name and symbol, empty where it has none, and its decimals.

    `decimals` is None for a contract that does not answer with one number; `stated` is that number as it came, which
    may be more than any coin has.
    """

    name: str
    symbol: str
    stated: int | None

    @property
    def decimals(self) -> int | None:
        """How many decimals its amounts have; None where it does not say, or names a number that no coin has."""
        return self.stated if self.stated is not None and self.stated <= MOST_DECIMALS else None

    @property
    def title(self) -> str:
        """What people call it: its name, else its symbol."""
        return self.name or self.symbol
