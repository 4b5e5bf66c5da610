"""Read the traits of tokens from OpenSea and from the tokens' own metadata, and combine them."""

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from itertools import groupby

from gateways import Gateways
from gateways.chains.catalogue import CHAINS
from gateways.chains.metadata_traits import TraitList
from gateways.chains.node_providers import origin
from gateways.transport.chunks import chunks
from gateways.transport.errors import ProviderError
from locales import N_
from locales.stored_texts import storable, within
from models import now
from services.collections.trait_match import BETWEEN_SOURCES, FROM_LINK, OF_INDEX, TokenTraits
from services.runtime import time_budget
from settings import settings

FROM_OPENSEA, FROM_METADATA = "OpenSea", "token metadata"
FETCH_SECONDS = 60.0
"""Time limit for all reads of one call; traits that arrive later are unknown."""
AT_ONCE = 6
TOKENS_A_PART = 30
"""Tokens of one contract in one part of the work: the maximum of one request to OpenSea."""

TokenKey = tuple[str, str, str]
"""A chain, a contract and a token id."""


def sources_on(outside: Gateways, chain: str) -> int:
    """Return the number of independent sources of traits on a chain: OpenSea and metadata, or Solana's indexes.

    Indexes of one provider count as one.
    """
    if CHAINS[chain].family == "evm":
        return 2 if settings().opensea_api_key and CHAINS[chain].opensea else 1
    return len({origin(chain, place) for place in range(outside.chains.endpoints(chain))})


async def fetch(
    outside: Gateways,
    places: Iterable[TokenKey],
    *,
    apart_from: Mapping[TokenKey, frozenset[str]] = {},
    every_source: bool = False,
    own_word_first: bool = False,
) -> dict[TokenKey, TokenTraits | str]:
    """Read each token's traits from their sources; return them, or the reason why they are unknown.

    OpenSea is asked first, and the tokens' own metadata fill the gaps; `own_word_first` reverses that order, and
    `every_source` asks both. `apart_from` names sources to skip for a token. An empty list from OpenSea proves nothing:
    it is also empty while OpenSea has not read the metadata. Does not use the database.
    """
    wanted = sorted(set(places), key=lambda place: (place[:2], sorted(apart_from.get(place, ())), place[2]))
    found: dict[TokenKey, TokenTraits | str] = dict.fromkeys(wanted, N_("its traits did not come in time"))
    turn = asyncio.Semaphore(AT_ONCE)

    async def one_part(ask: _Ask) -> None:
        async with turn:
            await ask.run(outside, found)

    asks = [
        _Ask(chain, contract, part, apart, every_source, own_word_first)
        for (chain, contract, apart), group in groupby(
            wanted, key=lambda place: (place[0], place[1], apart_from.get(place, frozenset[str]()))
        )
        for part in chunks([place[2] for place in group], TOKENS_A_PART)
    ]
    # Shuffled, so that slow sources do not delay the same tokens each time.
    random.shuffle(asks)
    try:
        async with time_budget.timeout(FETCH_SECONDS):
            await asyncio.gather(*(one_part(ask) for ask in asks))
    except TimeoutError:
        pass  # the answers that arrived in time are in `found`
    return found


@dataclass(frozen=True, slots=True)
class _Ask:
    """Some tokens of one contract, and the sources to ask about them."""

    chain: str
    contract: str
    token_ids: Sequence[str]
    apart_from: frozenset[str]
    every_source: bool
    own_word_first: bool

    async def run(self, outside: Gateways, found: dict[TokenKey, TokenTraits | str]) -> None:
        """Ask one source after the other; add each answer to `found` as it arrives."""
        told: dict[str, list[TokenTraits | str]] = {token_id: [] for token_id in self.token_ids}
        sources = (self._opensea, self._metadata)
        for ask in reversed(sources) if self.own_word_first else sources:
            wanted = [one for one, said in told.items() if self.every_source or not said or not _settled(said)]
            if not wanted:
                return
            answers = await ask(outside, wanted)
            for token_id, answer in answers.items():
                told[token_id].append(answer)
                found[self.chain, self.contract, token_id] = _together(told[token_id])

    async def _opensea(self, outside: Gateways, token_ids: Sequence[str]) -> Mapping[str, TokenTraits | str]:
        """Return OpenSea's traits; none for Solana, where the chain's own index reads the metadata."""
        if FROM_OPENSEA in self.apart_from or CHAINS[self.chain].family != "evm":
            return {}
        lists = dict[str, TraitList | ProviderError]()
        try:
            if len(token_ids) == 1:
                lists[token_ids[0]] = await outside.opensea.nft(self.chain, self.contract, token_ids[0])
            else:
                said = await outside.opensea.nfts(self.chain, [(self.contract, token_id) for token_id in token_ids])
                lists = {token_id: traits for (_, token_id), traits in said.items()}
        except ProviderError as fault:
            return dict.fromkeys(token_ids, str(fault))
        at = now()
        return {token_id: _told_by_opensea(lists.get(token_id), at) for token_id in token_ids}

    async def _metadata(self, outside: Gateways, token_ids: Sequence[str]) -> Mapping[str, TokenTraits | str]:
        """Return the traits in the tokens' own metadata. If an index reads it, it is one that may be asked."""
        if FROM_METADATA in self.apart_from:
            return {}
        index = next((_index_in(name) for name in sorted(self.apart_from) if _index_in(name)), "")
        said = await outside.metadata.traits(self.chain, self.contract, token_ids, apart_from=index)
        at = now()
        return {
            token_id: _why(told)
            if isinstance(told, ProviderError)
            else TokenTraits(told.found, _source_of(told), at, told.whole)
            for token_id, told in said.items()
        }


def _settled(said: Sequence[TokenTraits | str]) -> bool:
    return any(not isinstance(one, str) and one.whole for one in said)


def _together(said: Sequence[TokenTraits | str]) -> TokenTraits | str:
    """Combine the sources' lists: the complete ones, or the longest one if none is complete.

    An empty list means that the source reports no traits; if two sources do, the token has none.
    """
    lists = [one for one in said if not isinstance(one, str)]
    if len(lists) == 2 and not lists[0].traits and not lists[1].traits:
        return TokenTraits((), BETWEEN_SOURCES.join(one.source for one in lists), lists[1].read_at)
    whole = [one for one in lists if one.whole]
    if whole:
        return whole[0] if len(whole) == 1 else replace(whole[0], also=whole[1])
    if any(one.traits for one in lists):
        return max(lists, key=lambda one: len(one.traits))
    reasons = [one for one in said if isinstance(one, str)]
    if not reasons:
        return storable("{source} tells no traits", source=lists[0].source)
    return reduce(lambda one, more: storable("{one}; {more}", one=within(one), more=within(more)), reasons)


def _told_by_opensea(said: TraitList | ProviderError | None, at: datetime) -> TokenTraits | str:
    if said is None:
        return storable("{source}: no such token", source=FROM_OPENSEA)
    if isinstance(said, ProviderError):
        return str(said)
    return TokenTraits(said.found, FROM_OPENSEA, at, whole=said.whole and bool(said.found))


def _source_of(traits: TraitList) -> str:
    name = FROM_LINK if traits.linked else FROM_METADATA
    return f"{name}{OF_INDEX}{traits.index}" if traits.index else name


def _why(fault: ProviderError) -> str:
    """Return the reason to store, with the host of a token's own link as a value, which can be hidden."""
    if not fault.host:
        return str(fault)
    # Translators: {host} is where a token's metadata is, {reason} is in English, such as "HTTP 500".
    return storable("{host}: {reason}", host=fault.host, reason=str(fault).removeprefix(f"{fault.host}: "))


def _index_in(source: str) -> str:
    """Return the index at the end of a source's name, or the empty string."""
    return source.partition(OF_INDEX)[2]
