"""The chains whose collections a rule may name, and what is fixed about each."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Chain:
    """One chain. `block_seconds` is the usual time between blocks; `confirmations` how many make a transaction count.

    `settled_after` is how many blocks have to follow one before what it says can cost somebody a role.
    `multicall3` and `delegates` (delegate.xyz v2) are contracts known to be there; `l1_block_number` says that the
    EVM's NUMBER is not this chain's own (Arbitrum and its Orbit relatives). Fees are paid in `coin`. `pauses` says that
    the chain makes no blocks while nothing happens, so its newest block may be old.
    """

    key: str
    title: str
    family: Literal["evm", "solana"]
    chain_id: int
    block_seconds: float
    confirmations: int
    settled_after: int
    multicall3: str | None
    delegates: str | None
    opensea: str
    explorer: str
    l1_block_number: bool = False
    coin: str = "ETH"
    pauses: bool = False


MULTICALL3 = "0xca11bde05977b3631167028862be2a173976ca11"
DELEGATES = "0x00000000000000447e69651d841bd8d104bed493"


def _evm(
    key: str,
    title: str,
    chain_id: int,
    block_seconds: float,
    confirmations: int,
    opensea: str,
    explorer: str,
    *,
    multicall3: str = MULTICALL3,
    delegates: str = DELEGATES,
    l1_block_number: bool = False,
    coin: str = "ETH",
    settled_after: int = 0,
    pauses: bool = False,
) -> Chain:
    return Chain(
        key,
        title,
        "evm",
        chain_id,
        block_seconds,
        confirmations,
        settled_after or confirmations,
        multicall3,
        delegates,
        opensea,
        explorer,
        l1_block_number,
        coin,
        pauses,
    )


# Ids, times and Multicall3: docs/facts.md#evm-chains (for Abstract the address viem lists); OpenSea's names:
# docs/facts.md#opensea-chain-names; delegate.xyz: docs/facts.md#delegate-registry. ApeChain's block time is not
# published: an Orbit chain makes a block when it has something to put in it. Confirmations are ours, guided by
# docs/facts.md#finality: about half a minute where reorganisations happen, a few blocks where one sequencer orders
# everything. A loss can wait for longer: Polygon has had deep reorganisations. Nodes without an archive keep the state
# of the last 128 blocks, so it is always fewer.
CHAINS: dict[str, Chain] = {
    chain.key: chain
    for chain in (
        _evm("ethereum", "Ethereum", 1, 12, 3, "ethereum", "https://etherscan.io", settled_after=12),
        _evm("polygon", "Polygon", 137, 2, 12, "polygon", "https://polygonscan.com", coin="POL", settled_after=64),
        _evm("arbitrum", "Arbitrum", 42161, 0.25, 4, "arbitrum", "https://arbiscan.io", l1_block_number=True),
        _evm("optimism", "Optimism", 10, 2, 2, "optimism", "https://optimistic.etherscan.io"),
        _evm("base", "Base", 8453, 2, 2, "base", "https://basescan.org"),
        _evm(
            "apechain",
            "ApeChain",
            33139,
            2,
            2,
            "ape_chain",
            "https://apescan.io",
            l1_block_number=True,
            coin="APE",
            pauses=True,
        ),
        _evm(
            "abstract",
            "Abstract",
            2741,
            0.2,
            4,
            "abstract",
            "https://abscan.org",
            multicall3="0xaa4de41dba0ca5dcbb288b7cc6b708f3aac759e7",
            delegates="0x0000000059a24eb229eed07ac44229db56c5d797",
        ),
        Chain("solana", "Solana", "solana", 0, 0.4, 32, 32, None, None, "solana", "https://solscan.io", coin="SOL"),
    )
}
