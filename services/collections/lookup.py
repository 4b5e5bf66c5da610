"""Find the collection that a reference names: on OpenSea, on Magic Eden, or on its chain."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from gateways import Gateways
from gateways.chains.catalogue import CHAINS, form_order
from gateways.marketplaces.types import CollectionFacts
from gateways.transport.errors import NotThere, ProviderError, ProviderRefused, Unauthorized
from locales import _, listed, sentences, series
from services.collections.urls import SOLANA, CollectionReference
from services.core.addresses import AddressRefused, is_solana, parse_evm, pasted, shorten
from services.core.chain_names import chain_title
from services.core.errors import CollectionElsewhere, CollectionNotFound, CollectionView, FieldRefused, unavailable
from settings import settings

LOOK_SECONDS = 8.0
"""Time limit for asking all other chains at once; a chain that takes longer counts as unknown."""
MOST_OFFERED = 6


def asked_chain(chain: str) -> str:
    """Return the chain if rules can use it. Raises FieldRefused."""
    wanted = chain.strip().lower()
    if not wanted:
        raise FieldRefused("blockchain", _("Blockchain is required"))
    if wanted not in CHAINS:
        raise FieldRefused(
            "blockchain", _("Collections on {chain} cannot be used in rules.").format(chain=chain_title(wanted[:40]))
        )
    if not usable(wanted):
        raise FieldRefused(
            "blockchain", _("Rules on {chain} are not available here.").format(chain=chain_title(wanted))
        )
    return wanted


def usable(chain: str) -> bool:
    """Return whether rules may name the chain and a node is configured for it."""
    return chain in CHAINS and bool(settings().rpc.get(chain))


def address_on(chain: str, text: str) -> str:
    """Return the address in the chain's own form. Raises AddressRefused."""
    if chain != SOLANA:
        return parse_evm(text)
    given = pasted(text)
    if not is_solana(given):
        raise AddressRefused(_("That is not an address on Solana."))
    return given


def belongs_to(contract: str, chain: str) -> bool:
    """Return whether an address has the form of the chain's family."""
    return is_solana(contract) == (CHAINS[chain].family == SOLANA)


async def described(outside: Gateways, chain: str, contract: str) -> CollectionView:
    """Return the collection as its contract describes itself.

    Raises CollectionElsewhere if it is on other chains instead, CollectionNotFound, and ProviderError.
    """
    where = {"address": shorten(contract), "chain": chain_title(chain)}
    if not belongs_to(contract, chain):
        about = _("{address} is not an address on {chain}.").format(**where)
        raise await _elsewhere(outside, chain, contract, about)
    standard = await outside.chains.contract_standard(chain, contract)
    if standard == "none":
        about = _("There is no contract at {address} on {chain}.")
        if chain == SOLANA:
            about = _("There is no collection at {address} on {chain}.")
        raise await _elsewhere(outside, chain, contract, about.format(**where), nothing=True)
    if standard is None:
        about = _("The contract {address} on {chain} does not say that it is an NFT collection.").format(**where)
        raise await _elsewhere(outside, chain, contract, about)
    return await named_by_itself(outside, chain, contract)


async def named_by_itself(outside: Gateways, chain: str, contract: str) -> CollectionView:
    """Return the collection under its contract's own name, or under its shortened address if it has none."""
    name = await outside.chains.contract_name(chain, contract)
    return CollectionView(name or shorten(contract), contract, chain)


def several(message: str, offers: Sequence[CollectionView]) -> FieldRefused:
    """Return an error that offers several collections, with full addresses to copy."""
    places = series(
        _("{address} on {chain}").format(address=one.contract_address, chain=chain_title(one.blockchain))
        for one in offers[:MOST_OFFERED]
    )
    more = ", …" if len(offers) > MOST_OFFERED else ""
    advice = _("Paste the address of the one you mean: {places}.").format(places=f"{places}{more}")
    return FieldRefused("input", sentences(message, advice), offers)


async def _elsewhere(
    outside: Gateways, chain: str, contract: str, about: str, *, nothing: bool = False
) -> CollectionNotFound:
    """Search all other chains, and return the error for an address that is not a collection on its own."""
    others = [other for other in form_order() if other != chain and usable(other) and belongs_to(contract, other)]
    found = await asyncio.gather(*(_standard(outside, other, contract) for other in others))
    there = [
        other for other, standard in zip(others, found, strict=True) if standard is not None and standard != "none"
    ]
    if there:
        offers = [await _named(outside, other, contract) for other in there]
        names = listed(
            _("{name} on {chain}").format(name=one.name, chain=chain_title(one.blockchain)) for one in offers
        )
        advice = _("The same address is {names}. Choose that chain.").format(names=names)
        return CollectionElsewhere(sentences(about, advice), offers)
    silent = [chain_title(other) for other, standard in zip(others, found, strict=True) if standard is None]
    if silent:
        question = _("Is it a wallet's address, or is it on {chains}?").format(chains=listed(silent, "or"))
        return CollectionNotFound(sentences(about, question))
    if nothing:
        if others:
            about = sentences(about, _("Nor is there on any other chain here."))
        advice = _("It looks like a wallet's address: paste the collection's own contract.")
        return CollectionNotFound(sentences(about, advice))
    return CollectionNotFound(sentences(about, _("Paste the collection's own contract.")))


async def _standard(outside: Gateways, chain: str, contract: str) -> str | None:
    """Return the contract's standard, "none" if it is not a collection, or None if that cannot be read in time."""
    try:
        async with asyncio.timeout(LOOK_SECONDS):
            return await outside.chains.contract_standard(chain, contract) or "none"
    except (ProviderError, TimeoutError):
        return None


async def _named(outside: Gateways, chain: str, contract: str) -> CollectionView:
    try:
        return await named_by_itself(outside, chain, contract)
    except ProviderError:
        return CollectionView(shorten(contract), contract, chain)


FROM_OPENSEA, FROM_CONTRACT = "OpenSea", "contract"
TOKENS_OF_A_SYMBOL = 3
"""How many tokens of a symbol are looked up: a symbol on Magic Eden may cover more than one collection."""

Found = tuple[CollectionView, str]
"""A collection and the source of its name."""
ByContract = Callable[[str, str], Awaitable[CollectionView]]


async def by_slug(outside: Gateways, named: CollectionReference, blockchain: str) -> Found:
    """Return OpenSea's collection with this slug.

    If the page names a chain, only a contract on that chain fits; otherwise one on the form's chain is preferred.

    Raises FieldRefused (also if it has several contracts), CollectionNotFound, ProviderUnavailable.
    """
    slug = named.slug or ""
    only = asked_chain(named.chain) if named.chain else None
    try:
        found = await outside.opensea.collection(slug)
    except (NotThere, ProviderRefused) as fault:
        if isinstance(fault, Unauthorized):
            raise unavailable(fault) from fault
        raise CollectionNotFound(
            _("OpenSea knows no collection {slug}. Check the URL, or paste the contract's address.").format(
                slug=slug[:80]
            )
        ) from None
    except ProviderError as fault:
        raise unavailable(fault) from fault
    chosen = _chosen(found, only, blockchain.strip().lower())
    await _check_it_is_whole(outside, chosen)
    return chosen, FROM_OPENSEA


async def by_contract(outside: Gateways, chain: str, contract: str) -> Found:
    """Return the collection at an address, named by OpenSea if possible, otherwise by its contract.

    Raises CollectionNotFound, CollectionElsewhere, and ProviderError if its chain does not answer.
    """
    if belongs_to(contract, chain):
        try:
            return await _on_opensea(outside, chain, contract), FROM_OPENSEA
        except ProviderError:
            pass  # unknown to OpenSea, or no answer: ask the contract itself
    try:
        return await described(outside, chain, contract), FROM_CONTRACT
    except CollectionNotFound:
        if chain != SOLANA or not belongs_to(contract, chain):
            raise
        # A copied address of a single token means the token's collection.
        collection = await outside.mints.collection_of(contract)
        if collection is None:
            raise
        return await named_by_itself(outside, SOLANA, collection), FROM_CONTRACT


async def by_mint(outside: Gateways, mint: str, look_up: ByContract) -> CollectionView:
    """Return the collection of a single token on Solana. Raises CollectionNotFound, ProviderUnavailable."""
    asked_chain(SOLANA)
    try:
        collection = await outside.mints.collection_of(mint)
    except ProviderError as fault:
        raise unavailable(fault) from fault
    if collection is None:
        raise CollectionNotFound(
            _("The token {token} on Solana belongs to no collection that has confirmed it.").format(token=shorten(mint))
        )
    return await look_up(SOLANA, collection)


async def by_symbol(outside: Gateways, symbol: str, look_up: ByContract) -> CollectionView:
    """Return the collection of a symbol on Magic Eden. A symbol is only a label; its tokens name the collection.

    Raises CollectionNotFound, FieldRefused if the tokens belong to several collections, ProviderUnavailable.
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
            _(
                "Magic Eden shows no token of {symbol} that belongs to a collection. Paste the collection's address."
            ).format(symbol=symbol[:80])
        )
    if len(collections) > 1:
        offers = [CollectionView(shorten(one), one, SOLANA) for one in collections]
        raise several(_("{symbol} stands for several collections.").format(symbol=symbol[:80]), offers)
    return await look_up(SOLANA, collections[0])


def _chosen(found: CollectionFacts, only: str | None, preferred: str) -> CollectionView:
    """Return the collection for one of the contracts that OpenSea lists."""
    name = found.name or found.slug
    if not found.contracts:
        raise _unlisted(name)
    fitting = [(chain, contract) for chain, contract in found.contracts if usable(chain) and only in {None, chain}]
    if not fitting:
        where = series(sorted({chain_title(place[0][:40]) for place in found.contracts})[:5])
        offers = [_view(found, name, place) for place in found.contracts if usable(place[0])]
        told = _("{name} is on {chains}, which rules cannot ask about here.")
        if only:
            told = _("{name} is on {chains}, not on {chain}.")
        raise FieldRefused("blockchain", told.format(name=name, chains=where, chain=chain_title(only or "")), offers)
    fitting = [place for place in fitting if place[0] == preferred] or fitting
    if len(fitting) > 1:
        offers = [_view(found, name, place) for place in fitting]
        raise several(_("{name} has several contracts.").format(name=name), offers)
    return _view(found, name, fitting[0])


def _view(found: CollectionFacts, name: str, place: tuple[str, str]) -> CollectionView:
    chain, contract = place
    try:
        return CollectionView(name, address_on(chain, contract), chain, found.slug)
    except AddressRefused:
        raise _unlisted(name) from None


def _unlisted(name: str) -> CollectionNotFound:
    return CollectionNotFound(
        _("OpenSea lists no contract for {name}. Paste the contract's address.").format(name=name)
    )


async def _check_it_is_whole(outside: Gateways, found: CollectionView) -> None:
    """Refuse a contract that several collections share, because it cannot represent one of them.

    See docs/facts.md#opensea-shared-contracts.
    """
    try:
        facts = await outside.opensea.contract(found.blockchain, found.contract_address)
    except ProviderError:
        return
    if facts.slug and found.slug and facts.slug != found.slug:
        raise FieldRefused(
            "input",
            _(
                "{name} shares its contract with other collections, whose tokens a rule would count too. "
                "Paste {address} and choose the token IDs that are meant."
            ).format(name=found.name, address=found.contract_address),
        )


async def _on_opensea(outside: Gateways, chain: str, contract: str) -> CollectionView:
    """Return the collection by its name on OpenSea. Raises ProviderError."""
    found = await outside.opensea.contract(chain, contract)
    try:
        name = (await outside.opensea.collection(found.slug)).name if found.slug else ""
    except ProviderError:
        name = ""
    return CollectionView(name or found.name or shorten(contract), contract, chain, found.slug or None)
