"""What OpenSea says about chains: names, coins and explorers (ChainResponse and PaymentToken of its description)."""

from typing import Any

from sandbox.base.chain_table import CHAINS, Network

NETWORKS = {facts.opensea: facts.network for facts in CHAINS.values()} | {
    "solana": Network(
        "Solana", "SOL", "Solana", "Solscan", "https://solscan.io", "0.05", "150", 9,
        "So11111111111111111111111111111111111111111",
    )
}  # fmt: skip


def network(chain: str) -> dict[str, Any]:
    """Return a ChainResponse."""
    one = NETWORKS[chain]
    return {
        "chain": chain,
        "name": one.name,
        "symbol": one.symbol,
        "supports_swaps": True,
        "block_explorer": one.explorer,
        "block_explorer_url": one.explorer_url,
    }


def coin(url: str, chain: str) -> dict[str, Any]:
    """Return a PaymentToken: the coin of a chain."""
    one = NETWORKS[chain]
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
