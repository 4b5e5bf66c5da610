"""Which kinds of traits a collection's tokens have, and which values: as OpenSea lists them, else as tokens tell."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

from sqlmodel import col, select

from gateways import Gateways
from gateways.chains.catalogue import CHAINS
from gateways.transport.errors import NotThere, ProviderError, ProviderRefused, Unauthorized
from models import Collection, Token
from models.db.session import AsyncSession
from services.collections import token_traits
from services.collections.trait_match import TokenTraits, folded, number_in
from services.core.errors import CollectionNotFound, CollectionView, unavailable
from settings import settings

Kinds = Mapping[str, tuple[str, ...]]
"""Kind of trait → its values; none for numbers of which only bounds are told."""
SAMPLE = {"evm": 20, "solana": 300}
"""How many tokens are read where nobody lists a collection's traits. Solana's index tells many at once."""
LIKELY_IDS = tuple(str(number) for number in range(11))
"""Where a contract cannot list its tokens, most begin to count here."""
MOST_REMEMBERED = 2_000


async def kinds(db: AsyncSession, outside: Gateways, collection: CollectionView) -> Kinds:
    """The kinds and values of a collection's traits.

    OpenSea lists all. Where it lists none, or no key for it is set, tokens are read, and what they tell need not be
    all. While OpenSea only does not answer, they count if they are all: a list that lacks values would mislead.
    Raises CollectionNotFound where nobody tells any trait, ProviderUnavailable.
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
        raise CollectionNotFound(f"OpenSea lists no traits for {collection.name}, and its tokens tell none.")
    return told


def values(known: Kinds, kind: str) -> list[str]:
    """The values of a kind in order of the alphabet, numbers in theirs. Raises CollectionNotFound for no such kind."""
    name = kind if kind in known else next((one for one in known if folded(one) == folded(kind)), None)
    if name is None:
        raise CollectionNotFound(f"No trait {kind[:80]} is known of this collection.")
    return sorted(known[name], key=_order)


async def _on_opensea(outside: Gateways, collection: CollectionView) -> Kinds:
    slug = collection.slug or (await outside.opensea.contract(collection.blockchain, collection.contract_address)).slug
    return await outside.opensea.traits(slug) if slug else {}


async def _from_tokens(db: AsyncSession, outside: Gateways, collection: CollectionView) -> tuple[Kinds, bool]:
    """What a few tokens tell beside what is remembered of others; and whether these are all tokens that there are."""
    chain, contract = collection.blockchain, collection.contract_address
    family = CHAINS[chain].family
    most = SAMPLE[family]
    try:
        sample = await outside.metadata.sample(chain, contract, most)
    except ProviderError:
        sample = ()
    everything = 0 < len(sample) < most
    ids = sample or (LIKELY_IDS if family == "evm" else ())
    found = await token_traits.fetch(outside, [(chain, contract, token_id) for token_id in ids], own_word_first=True)
    await token_traits.remember(db, found)
    known = [one for one in found.values() if not isinstance(one, str)]
    complete = everything and len(known) == len(ids) and all(one.whole for one in known)
    return _gathered(known if complete else [*known, *await _remembered(db, chain, contract)]), complete


async def _remembered(db: AsyncSession, chain: str, contract: str) -> list[TokenTraits]:
    """What was read of the collection's tokens before, however long ago: it is only a help in choosing."""
    rows = await db.exec(
        select(Token)
        .join(Collection, col(Collection.id) == col(Token.collection_id))
        .where(Collection.chain == chain, Collection.contract == contract)
        .order_by(col(Token.updated_at).desc())
        .limit(MOST_REMEMBERED)
    )
    return [token_traits.of_row(row) for row in rows.all()]


def _gathered(tokens: Iterable[TokenTraits]) -> Kinds:
    """Every value of every kind once; values that differ only in case are one, and so are kinds."""
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
    """Numbers first, by their size, then texts."""
    size = number_in(value)
    return size is None, size or Decimal(0), value.casefold()
