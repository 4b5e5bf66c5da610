"""Token metadata: a token's traits, from the document to which its contract points."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import orjson

from gateways.chains.catalogue import CHAINS
from gateways.chains.metadata_addresses import ContentGateways, LinkUnusable, located
from gateways.chains.metadata_traits import NoMetadata, TraitList, of_metadata
from gateways.evm.tokens.token_records import TokenRecord, TokenRecords
from gateways.transport.errors import NotThere, ProviderConfused, ProviderDown, ProviderError
from gateways.transport.safe_fetch import Fetcher

METADATA = "Token metadata"
AT_ONCE = 8
Told = TraitList | ProviderError


class TokenMetadata:
    """The metadata of tokens, wherever their contracts store them.

    The chain says where the documents are; up to eight are fetched at a time. `records` has an entry for each readable
    family of chains (`evm`, `solana`).
    """

    def __init__(
        self, records: Mapping[str, TokenRecords], fetching: Fetcher, *, ipfs_url: str, arweave_url: str
    ) -> None:
        self._records, self._fetching = records, fetching
        self._gateways = ContentGateways(ipfs_url, arweave_url)

    async def traits(
        self, chain: str, contract: str, token_ids: Sequence[str], *, apart_from: str = ""
    ) -> Mapping[str, Told]:
        """Return for each token its traits, or the error for which they are unknown.

        If the chain itself does not answer, every token has that error. The index `apart_from` is not used.
        """
        wanted = list(dict.fromkeys(token_ids))
        try:
            records = await self._of(chain).records(chain, contract, wanted, apart_from=apart_from)
        except ProviderError as fault:
            return dict.fromkeys(wanted, fault)
        turn = asyncio.Semaphore(AT_ONCE)

        async def one(token_id: str) -> Told:
            record = records.get(token_id)
            if record is None:
                return NotThere(METADATA, "the contract does not say where they are")
            async with turn:
                try:
                    return replace(await self._read(record), index=record.index)
                except ProviderError as fault:
                    return fault

        return dict(zip(wanted, await asyncio.gather(*map(one, wanted)), strict=True))

    async def sample(self, chain: str, contract: str, most: int) -> Sequence[str]:
        """Return ids of at most `most` tokens of a collection, as far as its chain can list them.

        Raises ProviderError when the chain does not answer.
        """
        return await self._of(chain).sample(chain, contract, most)

    def _of(self, chain: str) -> TokenRecords:
        family = CHAINS[chain].family
        if family not in self._records:
            raise ProviderDown(CHAINS[chain].title, "no node is set for it")
        return self._records[family]

    async def _read(self, record: TokenRecord) -> TraitList:
        """Return the traits behind a record; raises ProviderError."""
        if record.traits is not None:
            return record.traits
        try:
            place = located(record.link, self._gateways)
        except LinkUnusable as fault:
            raise ProviderConfused(METADATA, str(fault)) from None
        document = place if isinstance(place, bytes) else await self._fetched(place)
        try:
            found = of_metadata(cast("object", orjson.loads(document.removeprefix(b"\xef\xbb\xbf"))))
        except orjson.JSONDecodeError:
            raise ProviderConfused(METADATA, "the document is not JSON") from None
        except NoMetadata as fault:
            raise ProviderConfused(METADATA, str(fault)) from None
        return replace(found, linked=bool(record.index) and not isinstance(place, bytes))

    async def _fetched(self, link: str) -> bytes:
        try:
            return await self._fetching.get(link)
        except ProviderError as fault:
            fault.host = fault.provider
            raise
