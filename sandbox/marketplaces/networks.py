"""What OpenSea tells of chains: names, coins and explorers (ChainResponse and PaymentToken of its description)."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Network:
    """One chain as OpenSea shows it; `native` is the address that stands for its coin."""

    name: str
    symbol: str
    coin: str
    explorer: str
    explorer_url: str
    eth_price: str = "1"
    usd_price: str = "3000"
    decimals: int = 18
    native: str = "0x0000000000000000000000000000000000000000"


NETWORKS = {
    "ethereum": Network("Ethereum", "ETH", "Ether", "Etherscan", "https://etherscan.io"),
    "polygon": Network("Polygon", "POL", "POL", "PolygonScan", "https://polygonscan.com", "0.0001", "0.3"),
    "arbitrum": Network("Arbitrum", "ETH", "Ether", "Arbiscan", "https://arbiscan.io"),
    "optimism": Network("Optimism", "ETH", "Ether", "Optimistic Etherscan", "https://optimistic.etherscan.io"),
    "base": Network("Base", "ETH", "Ether", "BaseScan", "https://basescan.org"),
    "ape_chain": Network("ApeChain", "APE", "ApeCoin", "ApeScan", "https://apescan.io", "0.0002", "0.6"),
    "abstract": Network("Abstract", "ETH", "Ether", "Abscan", "https://abscan.org"),
    "solana": Network(
        "Solana", "SOL", "Solana", "Solscan", "https://solscan.io", "0.05", "150", 9,
        "So11111111111111111111111111111111111111111",
    ),
}  # fmt: skip


def _of(chain: str) -> Network:
    return NETWORKS.get(chain) or Network(chain.title(), "ETH", "Ether", "Explorer", "https://explorer.example")


def network(chain: str) -> dict[str, Any]:
    """ChainResponse."""
    one = _of(chain)
    return {
        "chain": chain,
        "name": one.name,
        "symbol": one.symbol,
        "supports_swaps": True,
        "block_explorer": one.explorer,
        "block_explorer_url": one.explorer_url,
    }


def coin(url: str, chain: str) -> dict[str, Any]:
    """PaymentToken: the coin of a chain."""
    one = _of(chain)
    return {
        "symbol": one.symbol,
        "address": one.native,
        "chain": chain,
        "image": f"{url}/favicon.ico",
        "name": one.coin,
        "decimals": one.decimals,
        "eth_price": one.eth_price,
        "usd_price": one.usd_price,
    }
