"""Where the traits of tokens are told: OpenSea and the tokens' own metadata, and what both together say."""

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby

from gateways import Gateways
from gateways.attributes import TraitList
from gateways.chain_table import CHAINS
from gateways.errors import ProviderError
from services.trait_match import TokenTraits

FROM_OPENSEA, FROM_METADATA = "OpenSea", "token metadata"
FETCH_SECONDS = 60.0
"""All of one look outside; what has not come by then is unknown."""
AT_ONCE = 6
TOKENS_A_PART = 30
"""Tokens of one contract that are asked about together: as many as go into one question to OpenSea."""

Place = tuple[str, str, str]
"""Chain, contract and token id."""


async def fetch(
    outside: Gateways, places: Iterable[Place], *, own_word_first: bool = False
) -> dict[Place, TokenTraits | str]:
    """The traits as they are told outside now, or for each token why they are unknown. It touches no table.

    OpenSea is asked first and the tokens' own metadata for what it does not tell; with `own_word_first` the other way
    round, for a second look at what the first one said. OpenSea's empty list alone says nothing: it is empty too while
    the metadata are unread.
    """
    wanted = sorted(set(places))
    found: dict[Place, TokenTraits | str] = dict.fromkeys(wanted, "its traits did not come in time")
    turn = asyncio.Semaphore(AT_ONCE)

    async def one_part(chain: str, contract: str, token_ids: Sequence[str]) -> None:
        async with turn:
            await _fetch_part(outside, chain, contract, token_ids, own_word_first, found)

    parts = [
        (chain, contract, part)
        for (chain, contract), group in groupby(wanted, key=lambda place: place[:2])
        for part in _parts([place[2] for place in group])
    ]
    # So that what is slow does not keep the same others waiting each time.
    random.shuffle(parts)
    try:
        async with asyncio.timeout(FETCH_SECONDS):
            await asyncio.gather(*(one_part(*part) for part in parts))
    except TimeoutError:
        pass  # what came in time is in `found`
    return found


async def _fetch_part(
    outside: Gateways,
    chain: str,
    contract: str,
    token_ids: Sequence[str],
    own_word_first: bool,
    found: dict[Place, TokenTraits | str],
) -> None:
    """Ask one source after the other; each answer is in `found` as soon as it is there."""
    sources = [_of_opensea, _of_metadata]
    if own_word_first:
        sources.reverse()
    told: dict[str, list[TokenTraits | str]] = {token_id: [] for token_id in token_ids}
    for ask in sources:
        open_ids = [token_id for token_id, said in told.items() if not said or not _settled(said)]
        if not open_ids:
            return
        answers = await ask(outside, chain, contract, open_ids)
        for token_id, answer in answers.items():
            told[token_id].append(answer)
            found[chain, contract, token_id] = _together(told[token_id])


def _settled(said: Sequence[TokenTraits | str]) -> bool:
    return any(not isinstance(one, str) and one.whole for one in said)


def _together(said: Sequence[TokenTraits | str]) -> TokenTraits | str:
    """What two sources say as one answer: the whole list, else what is there.

    A list that is empty and not whole is a source that tells no traits: two of these agree that there are none.
    """
    lists = [one for one in said if not isinstance(one, str)]
    for one in lists:
        if one.whole:
            return one
    if len(lists) == 2 and not lists[0].traits and not lists[1].traits:
        return TokenTraits((), f"{lists[0].source}, {lists[1].source}", lists[1].read_at)
    if any(one.traits for one in lists):
        return max(lists, key=lambda one: len(one.traits))
    reasons = [one for one in said if isinstance(one, str)]
    return "; ".join(reasons) if reasons else f"{lists[0].source} tells no traits"


async def _of_opensea(
    outside: Gateways, chain: str, contract: str, token_ids: Sequence[str]
) -> Mapping[str, TokenTraits | str]:
    """What OpenSea tells; it is not asked about Solana, where the chain's own index reads the metadata."""
    if CHAINS[chain].family != "evm":
        return {}
    try:
        if len(token_ids) == 1:
            lists = {token_ids[0]: await outside.opensea.nft(chain, contract, token_ids[0])}
        else:
            said = await outside.opensea.nfts(chain, [(contract, token_id) for token_id in token_ids])
            lists = {token_id: traits for (_, token_id), traits in said.items()}
    except ProviderError as fault:
        return dict.fromkeys(token_ids, str(fault))
    at = datetime.now(UTC)
    return {
        token_id: TokenTraits(lists[token_id].found, FROM_OPENSEA, at, _says_all(lists[token_id]))
        if token_id in lists
        else f"{FROM_OPENSEA}: no such token"
        for token_id in token_ids
    }


def _says_all(traits: TraitList) -> bool:
    return traits.whole and bool(traits.found)


async def _of_metadata(
    outside: Gateways, chain: str, contract: str, token_ids: Sequence[str]
) -> Mapping[str, TokenTraits | str]:
    """What the tokens' own metadata tell."""
    said = await outside.metadata.traits(chain, contract, token_ids)
    at = datetime.now(UTC)
    return {
        token_id: str(told)
        if isinstance(told, ProviderError)
        else TokenTraits(told.found, FROM_METADATA, at, told.whole)
        for token_id, told in said.items()
    }


def _parts(token_ids: list[str]) -> list[list[str]]:
    return [token_ids[start : start + TOKENS_A_PART] for start in range(0, len(token_ids), TOKENS_A_PART)]
