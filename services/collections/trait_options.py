"""The kinds and values of traits in a collection: as OpenSea lists them, or from a sample of its tokens."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

from sqlmodel import col, select

from gateways import Gateways
from gateways.chains.catalogue import CHAINS
from gateways.transport.errors import NotThere, ProviderError, ProviderRefused, Unauthorized
from locales import _
from models import Collection, Token
from models.db.session import AsyncSession
from services.collections import stored_traits, trait_sources
from services.collections.trait_match import TokenTraits, folded, number_in
from services.core.errors import CollectionNotFound, CollectionView, unavailable
from settings import settings

Kinds = Mapping[str, tuple[str, ...]]
"""Kind of trait → its values; empty for numbers of which only bounds are known."""
SAMPLE = {"evm": 20, "solana": 300}
"""How many tokens to read if OpenSea does not list a collection's traits. Solana's index returns many at once."""
LIKELY_IDS = tuple(str(number) for number in range(11))
"""The first token ids to try if a contract cannot list its tokens."""
MOST_REMEMBERED = 2_000


async def kinds(db: AsyncSession, outside: Gateways, collection: CollectionView) -> Kinds:
    """Return the kinds and values of a collection's traits.

    OpenSea's list is complete. If it lists none, or no key is configured, the traits come from tokens and may be
    incomplete. If OpenSea fails to answer, the traits of tokens are returned only if they are complete: a list that
    lacks values would mislead.

    Raises CollectionNotFound if there are no traits, ProviderUnavailable.
    """
    fault: ProviderError | None = None
    try:
        if listed := await _on_opensea(outside, collection):
            return listed
    except (NotThere, ProviderRefused) as refused:
        fault = refused if isinstance(refused, Unauthorized) and settings().opensea_api_key else None
    except ProviderError as down:
        fault = down
    told, everything = await _from_tokens(db, outside, collection)
    if fault is not None and not (told and everything):
        raise unavailable(fault) from fault
    if not told:
        raise CollectionNotFound(
            _("OpenSea lists no traits for {name}, and its tokens have none.").format(name=collection.name)
        )
    return told


def values(known: Kinds, kind: str) -> list[str]:
    """Return the values of a kind in alphabetical or numerical order. Raises CollectionNotFound for no such kind."""
    name = kind if kind in known else next((one for one in known if folded(one) == folded(kind)), None)
    if name is None:
        raise CollectionNotFound(_("This collection has no known trait {kind}.").format(kind=kind[:80]))
    return sorted(known[name], key=_order)


async def _on_opensea(outside: Gateways, collection: CollectionView) -> Kinds:
    slug = collection.slug or (await outside.opensea.contract(collection.blockchain, collection.contract_address)).slug
    return await outside.opensea.traits(slug) if slug else {}


async def _from_tokens(db: AsyncSession, outside: Gateways, collection: CollectionView) -> tuple[Kinds, bool]:
    """Return the traits of sampled and stored tokens, and whether the sample is the whole collection, read in full."""
    chain, contract = collection.blockchain, collection.contract_address
    family = CHAINS[chain].family
    most = SAMPLE[family]
    try:
        sample = await outside.metadata.sample(chain, contract, most)
    except ProviderError:
        sample = ()
    everything = 0 < len(sample) < most
    ids = sample or (LIKELY_IDS if family == "evm" else ())
    found = await trait_sources.fetch(outside, [(chain, contract, token_id) for token_id in ids], own_word_first=True)
    await stored_traits.remember(db, found)
    known = [one for one in found.values() if not isinstance(one, str)]
    complete = everything and len(known) == len(ids) and all(one.whole for one in known)
    return _gathered(known if complete else [*known, *await _remembered(db, chain, contract)]), complete


async def _remembered(db: AsyncSession, chain: str, contract: str) -> list[TokenTraits]:
    """Return the stored traits of the collection's tokens, of any age: they are only suggestions."""
    rows = await db.exec(
        select(Token)
        .join(Collection, col(Collection.id) == col(Token.collection_id))
        .where(Collection.chain == chain, Collection.contract == contract)
        .order_by(col(Token.updated_at).desc())
        .limit(MOST_REMEMBERED)
    )
    return [stored_traits.of_row(row) for row in rows.all()]


def _gathered(tokens: Iterable[TokenTraits]) -> Kinds:
    """Return every value of every kind once, ignoring differences in case."""
    names: dict[str, str] = {}
    found: dict[str, dict[str, str]] = {}
    for token in tokens:
        for trait in token.traits:
            kind, value = trait.kind, str(trait.value)
            if kind and value:
                names.setdefault(folded(kind), kind)
                found.setdefault(folded(kind), {}).setdefault(folded(value), value)
    return {names[key]: tuple(values.values()) for key, values in found.items()}


def _order(value: str) -> tuple[bool, Decimal, str]:
    """Return a sort key: numbers first, by size, then texts."""
    size = number_in(value)
    return size is None, size or Decimal(0), value.casefold()
