"""One client for all chains, which forwards each question to the client of the chain's family."""

from collections.abc import Sequence

from gateways.chains.balance_sheet import BalanceSheet, Segment
from gateways.chains.catalogue import CHAINS
from gateways.chains.coin_facts import CoinFacts
from gateways.chains.read_point import NEWEST, ReadPoint
from gateways.chains.token_sheet import NO_TRAILS, TokenSheet, Trails
from gateways.chains.view_sheet import ViewQuestion, ViewSheet
from gateways.evm.client import Chains, EvmChains
from gateways.evm.rpc.node import Head
from gateways.evm.tokens.contract_info import Standard
from gateways.solana.client import SolanaChains


class AllChains:
    """`Chains` for every chain. A chain that is not in the table has no node, and no answer."""

    def __init__(self, evm: EvmChains, solana: SolanaChains) -> None:
        self._evm, self._solana = evm, solana

    async def close(self) -> None:
        """Close all connections."""
        await self._evm.close()
        await self._solana.close()

    def _of(self, chain: str) -> Chains:
        return self._solana if CHAINS[chain].family == "solana" else self._evm

    def endpoints(self, chain: str) -> int:
        """Return the number of nodes that are set for the chain; 0 for one that is off or unknown."""
        return self._of(chain).endpoints(chain) if chain in CHAINS else 0

    def costly(self, chain: str) -> frozenset[str]:
        """Return what the family's client returns; nothing for an unknown chain."""
        return self._of(chain).costly(chain) if chain in CHAINS else frozenset()

    def is_silent(self, chain: str) -> bool:
        """Return what the family's client returns; False for an unknown chain."""
        return chain in CHAINS and self._of(chain).is_silent(chain)

    async def balances(self, chain: str, segments: Sequence[Segment], *, at: ReadPoint = NEWEST) -> list[BalanceSheet]:
        """Forward to the client of the chain's family."""
        return await self._of(chain).balances(chain, segments, at=at)

    async def tokens(
        self,
        chain: str,
        contract: str,
        owners: Sequence[str],
        *,
        token_ids: Sequence[str] = (),
        trails: Trails = NO_TRAILS,
        at: ReadPoint = NEWEST,
    ) -> TokenSheet:
        """Forward to the client of the chain's family."""
        return await self._of(chain).tokens(chain, contract, owners, token_ids=token_ids, trails=trails, at=at)

    async def anything(
        self, chain: str, owners: Sequence[str], *, trails: Trails = NO_TRAILS, at: ReadPoint = NEWEST
    ) -> TokenSheet:
        """Forward to the client of the chain's family."""
        return await self._of(chain).anything(chain, owners, trails=trails, at=at)

    async def view(
        self, chain: str, question: ViewQuestion, owners: Sequence[str], *, at: ReadPoint = NEWEST
    ) -> ViewSheet:
        """Forward to the client of the chain's family."""
        return await self._of(chain).view(chain, question, owners, at=at)

    async def head(self, chain: str, endpoint: int | None = None) -> Head:
        """Forward to the client of the chain's family."""
        return await self._of(chain).head(chain, endpoint)

    async def contract_standard(self, chain: str, contract: str) -> Standard | None:
        """Forward to the client of the chain's family."""
        return await self._of(chain).contract_standard(chain, contract)

    async def contract_name(self, chain: str, contract: str) -> str | None:
        """Forward to the client of the chain's family."""
        return await self._of(chain).contract_name(chain, contract)

    async def coin(self, chain: str, contract: str) -> CoinFacts | None:
        """Forward to the client of the chain's family."""
        return await self._of(chain).coin(chain, contract)
