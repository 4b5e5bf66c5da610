"""What a coin states about itself, read by `gateways/evm/tokens/contract_info.py` and `gateways/solana/coins.py`."""

from dataclasses import dataclass

MOST_DECIMALS = 36
"""The most decimals that are believed. Coins usually have 18; the amounts of one that states far more mean nothing."""


@dataclass(frozen=True, slots=True)
class CoinFacts:
    """A coin's name and symbol, empty where it has none, and its decimals.

    `stated` is the number of decimals as the contract gave it, which may be more than any coin has; None for a contract
    that does not answer with one number.
    """

    name: str
    symbol: str
    stated: int | None

    @property
    def decimals(self) -> int | None:
        """The number of decimals of its amounts; None where the coin states none, or more than any coin has."""
        return self.stated if self.stated is not None and self.stated <= MOST_DECIMALS else None

    @property
    def title(self) -> str:
        """The name that people know it by: its name, or its symbol if it has none."""
        return self.name or self.symbol
