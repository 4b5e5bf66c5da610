"""Finds the collection that a reference names: on OpenSea, on Magic Eden, or on its chain."""

from collections.abc import Awaitable, Callable

from gateways import Gateways
from gateways.marketplaces.protocol import CollectionFacts
from gateways.transport.errors import NotThere, ProviderError, ProviderRefused, Unauthorized
from services.collections.chain_search import (
    SOLANA,
    address_on,
    asked_chain,
    belongs_to,
    described,
    named_by_itself,
    several,
    usable,
)
from services.collections.urls import CollectionReference
from services.core.addresses import AddressRefused, shorten
from services.core.chain_names import chain_title
from services.core.collection_views import CollectionView
from services.core.errors import CollectionNotFound, FieldRefused, unavailable

FROM_OPENSEA, FROM_CONTRACT = "OpenSea", "contract"
TOKENS_OF_A_SYMBOL = 3
"""How many of a symbol's tokens are looked up: a symbol of Magic Eden's may stand for more than one collection."""

Found = tuple[CollectionView, str]
"""A collection and who named it."""
ByContract = Callable[[str, str], Awaitable[CollectionView]]


async def by_slug(outside: Gateways, named: CollectionReference, blockchain: str) -> Found:
    """OpenSea's collection with this slug, on the page's chain, else on the form's, else on its only one.

    Raises FieldRefused (also where it has several contracts), CollectionNotFound, ProviderUnavailable.
    """
    slug = named.slug or ""
    only = asked_chain(named.chain) if named.chain else None
    try:
        found = await outside.opensea.collection(slug)
    except (NotThere, ProviderRefused) as fault:
        if isinstance(fault, Unauthorized):
            raise unavailable(fault) from fault
        raise CollectionNotFound(
            f"OpenSea knows no collection {slug[:80]}. Check the URL, or paste the contract's address."
        ) from None
    except ProviderError as fault:
        raise unavailable(fault) from fault
    chosen = _chosen(found, only, blockchain.strip().lower())
    await _check_it_is_whole(outside, chosen)
    return chosen, FROM_OPENSEA


async def by_contract(outside: Gateways, chain: str, contract: str) -> Found:
    """The collection at an address, by its name on OpenSea, which is often nicer, else by its own.

    Raises CollectionNotFound, CollectionElsewhere, and ProviderError when its chain does not answer.
    """
    if belongs_to(contract, chain):
        try:
            return await _on_opensea(outside, chain, contract), FROM_OPENSEA
        except ProviderError:
            pass  # OpenSea does not know it, or does not answer: the contract can speak for itself
    try:
        return await described(outside, chain, contract), FROM_CONTRACT
    except CollectionNotFound:
        if chain != SOLANA or not belongs_to(contract, chain):
            raise
        # Somebody may have copied a single token's address: then its collection is meant.
        collection = await outside.mints.collection_of(contract)
        if collection is None:
            raise
        return await named_by_itself(outside, SOLANA, collection), FROM_CONTRACT


async def by_mint(outside: Gateways, mint: str, look_up: ByContract) -> CollectionView:
    """The collection of a single token on Solana. Raises CollectionNotFound, ProviderUnavailable."""
    asked_chain(SOLANA)
    try:
        collection = await outside.mints.collection_of(mint)
    except ProviderError as fault:
        raise unavailable(fault) from fault
    if collection is None:
        raise CollectionNotFound(f"The token {shorten(mint)} on Solana belongs to no collection that has confirmed it.")
    return await look_up(SOLANA, collection)


async def by_symbol(outside: Gateways, symbol: str, look_up: ByContract) -> CollectionView:
    """The collection that Magic Eden calls so: a symbol is a label there, so its tokens say which collection it is.

    Raises CollectionNotFound, FieldRefused where the tokens are of several, ProviderUnavailable.
    """
    asked_chain(SOLANA)
    try:
        mints = await outside.magiceden.mints(symbol)
        belong = [await outside.mints.collection_of(mint) for mint in mints[:TOKENS_OF_A_SYMBOL]]
    except ProviderError as fault:
        raise unavailable(fault) from fault
    collections = list(dict.fromkeys(one for one in belong if one is not None))
    if not collections:
        raise CollectionNotFound(
            f"Magic Eden shows no token of {symbol[:80]} that belongs to a collection. Paste the collection's address."
        )
    if len(collections) > 1:
        offers = [CollectionView(shorten(one), one, SOLANA) for one in collections]
        raise several(f"{symbol[:80]} stands for several collections.", offers)
    return await look_up(SOLANA, collections[0])


def _chosen(found: CollectionFacts, only: str | None, preferred: str) -> CollectionView:
    """Which of a collection's contracts is meant."""
    name = found.name or found.slug
    if not found.contracts:
        raise CollectionNotFound(f"OpenSea lists no contract for {name}. Paste the contract's address.")
    fitting = [(chain, contract) for chain, contract in found.contracts if usable(chain) and only in {None, chain}]
    if not fitting:
        where = ", ".join(sorted({chain_title(chain[:40]) for chain, _ in found.contracts})[:5])
        wanted = f"not on {chain_title(only)}" if only else "which rules cannot ask about here"
        offers = [_view(found, name, place) for place in found.contracts if usable(place[0])]
        raise FieldRefused("blockchain", f"{name} is on {where}, {wanted}.", offers)
    fitting = [place for place in fitting if place[0] == preferred] or fitting
    if len(fitting) > 1:
        offers = [_view(found, name, place) for place in fitting]
        raise several(f"{name} has several contracts.", offers)
    return _view(found, name, fitting[0])


def _view(found: CollectionFacts, name: str, place: tuple[str, str]) -> CollectionView:
    chain, contract = place
    try:
        return CollectionView(name, address_on(chain, contract), chain, found.slug)
    except AddressRefused:
        raise CollectionNotFound(f"OpenSea lists no contract for {name}. Paste the contract's address.") from None


async def _check_it_is_whole(outside: Gateways, found: CollectionView) -> None:
    """A contract that several collections share cannot stand for one of them.

    See docs/facts.md#opensea-shared-contracts.
    """
    try:
        facts = await outside.opensea.contract(found.blockchain, found.contract_address)
    except ProviderError:
        return
    if facts.slug and found.slug and facts.slug != found.slug:
        raise FieldRefused(
            "input",
            f"{found.name} shares its contract with other collections, whose tokens a rule would count too. "
            f"Paste {found.contract_address} and choose the token IDs that are meant.",
        )


async def _on_opensea(outside: Gateways, chain: str, contract: str) -> CollectionView:
    """The collection by its name on OpenSea. Raises ProviderError."""
    found = await outside.opensea.contract(chain, contract)
    try:
        name = (await outside.opensea.collection(found.slug)).name if found.slug else ""
    except ProviderError:
        name = ""
    return CollectionView(name or found.name or shorten(contract), contract, chain, found.slug or None)
