"""Collections for the rule form: found by address or marketplace page, with their names stored and their traits."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import partial

from sqlmodel import select

from gateways import Gateways
from gateways.chains.balance_sheet import NATIVE
from gateways.transport.errors import ProviderError
from gateways.transport.fair_turns import on_behalf_of
from locales import _
from models import Collection, now
from models.db.database import release
from models.db.row import upsert
from models.db.session import AsyncSession
from services.collections import coins, lookup, trait_options
from services.collections.lookup import FROM_OPENSEA, Found, address_on, asked_chain
from services.collections.urls import MAGIC_EDEN, OPENSEA, LinkRefused, Site, is_address, is_link, read, site
from services.core.actors import Actor
from services.core.addresses import AddressRefused
from services.core.errors import CollectionElsewhere, CollectionNotFound, CollectionView, FieldRefused, unavailable
from settings import settings

FRESH_FOR = timedelta(minutes=10)
"""How long a stored name is used before the marketplace is asked again."""


def _sites() -> tuple[Site, ...]:
    chosen = settings()
    return site(OPENSEA, chosen.opensea_url), site(MAGIC_EDEN, chosen.magiceden_url)


def is_whole(text: str) -> bool:
    """Return whether a text being typed looks like a complete address or URL, so that it is worth looking up."""
    return is_address(text) or is_link(text, _sites())


def asked_by(actor: Actor) -> AbstractContextManager[None]:
    """Make what is asked inside the `with` this person's share of marketplaces, nodes and links."""
    return on_behalf_of(f"user:{actor.user_id}")


async def parse(
    db: AsyncSession, outside: Gateways, given: str, blockchain: str, *, no_older_than: timedelta = FRESH_FOR
) -> CollectionView:
    """Return the collection that an address on `blockchain` or a marketplace's page refers to.

    An address that is not a collection's may be a coin's.

    A page of one token, or a single token's address on Solana, refers to the token's collection. A page that names its
    chain, or an address in Solana's form, overrides `blockchain`. A name read within `no_older_than` is not read again.
    Raises FieldRefused, CollectionNotFound, CollectionElsewhere, ProviderUnavailable.
    """
    if not given.strip():
        raise FieldRefused("input", _("Enter a contract address or collection URL first"))
    if coins.is_native(given):
        return await coin(db, outside, given, blockchain)
    try:
        named = read(given, _sites())
    except LinkRefused as fault:
        raise FieldRefused("input", str(fault)) from None
    by_contract = partial(_by_contract, db, outside, no_older_than=no_older_than)
    if named.contract is not None:
        return await by_contract(asked_chain(named.chain or blockchain), named.contract)
    await release(db)
    if named.mint is not None:
        return await lookup.by_mint(outside, named.mint, by_contract)
    if named.symbol is not None:
        return await lookup.by_symbol(outside, named.symbol, by_contract)
    return await _keep(db, await lookup.by_slug(outside, named, blockchain))


async def coin(db: AsyncSession, outside: Gateways, given: str, blockchain: str) -> CollectionView:
    """Return the coin that an address on `blockchain` or "native" refers to.

    Raises FieldRefused, CollectionNotFound, ProviderUnavailable.
    """
    if not given.strip():
        raise FieldRefused("input", _("Enter a coin's contract address, or native"))
    chain = asked_chain(blockchain)
    try:
        contract = NATIVE if coins.is_native(given) else address_on(chain, given)
    except AddressRefused as fault:
        raise FieldRefused("input", str(fault)) from None
    await release(db)
    try:
        return await coins.look_up(db, outside, chain, contract)
    except ProviderError as fault:
        raise unavailable(fault) from fault


async def trait_types(db: AsyncSession, outside: Gateways, contract: str, blockchain: str) -> list[str]:
    """Return the kinds of traits of a collection's tokens in alphabetical order.

    Raises FieldRefused, CollectionNotFound, ProviderUnavailable.
    """
    known = await _kinds(db, outside, contract, blockchain)
    return sorted(known, key=str.casefold)


async def trait_values(db: AsyncSession, outside: Gateways, contract: str, blockchain: str, kind: str) -> list[str]:
    """Return the values of one kind of trait; the list is empty for numbers of which only bounds are known.

    Raises FieldRefused, CollectionNotFound (also for an unknown kind), ProviderUnavailable.
    """
    known = await _kinds(db, outside, contract, blockchain)
    return trait_options.values(known, kind)


async def names(db: AsyncSession, places: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return the stored collection names by `(chain, contract)`."""
    wanted = sorted(set(places))
    if not wanted:
        return {}
    rows = await db.execute(
        "SELECT c.chain, c.contract, c.name FROM unnest(CAST(:chains AS text[]), CAST(:contracts AS text[])) "
        "AS w (chain, contract) JOIN collection c ON c.chain = w.chain AND c.contract = w.contract",
        {"chains": [chain for chain, _ in wanted], "contracts": [contract for _, contract in wanted]},
    )
    return {(str(chain), str(contract)): str(name) for chain, contract, name in rows.all()}


async def _kinds(db: AsyncSession, outside: Gateways, contract: str, blockchain: str) -> trait_options.Kinds:
    chain = asked_chain(blockchain)
    try:
        address = address_on(chain, contract)
    except AddressRefused as fault:
        raise FieldRefused("contractAddress", str(fault)) from None
    collection = await _by_contract(db, outside, chain, address)
    await release(db)
    return await trait_options.kinds(db, outside, collection)


async def _by_contract(
    db: AsyncSession, outside: Gateways, chain: str, contract: str, no_older_than: timedelta = FRESH_FOR
) -> CollectionView:
    stored = await db.exec(select(Collection).where(Collection.chain == chain, Collection.contract == contract))
    row = stored.first()
    if row is not None and now() - row.updated_at < no_older_than:
        return _view(row)
    known = row if row is not None and row.source else None
    await release(db)
    try:
        found = await lookup.by_contract(outside, chain, contract)
    except CollectionElsewhere:
        raise
    except CollectionNotFound:
        if (one := await _coin_at(db, outside, chain, contract)) is None:
            raise
        return one
    except ProviderError as fault:
        if known is not None:
            return _view(known)
        raise unavailable(fault) from fault
    if known is not None and known.source == FROM_OPENSEA and found[1] != FROM_OPENSEA:
        # Keep the name people know, even if OpenSea does not answer now.
        return _view(known)
    return await _keep(db, found)


async def _coin_at(db: AsyncSession, outside: Gateways, chain: str, contract: str) -> CollectionView | None:
    """Return the coin at an address that is not a collection's, if there is one. Raises ProviderUnavailable."""
    if not lookup.belongs_to(contract, chain):
        return None
    try:
        return await coins.look_up(db, outside, chain, contract)
    except CollectionNotFound:
        return None
    except ProviderError as fault:
        raise unavailable(fault) from fault


async def _keep(db: AsyncSession, named: Found) -> CollectionView:
    found, source = named
    values = {
        "chain": found.blockchain, "contract": found.contract_address, "name": found.name, "slug": found.slug,
        "source": source, "updated_at": now(),
    }  # fmt: skip
    changed = ("name", "slug", "source", "updated_at")
    await db.execute(upsert(Collection, [values], ("chain", "contract"), changed))
    return found


def _view(row: Collection) -> CollectionView:
    return CollectionView(row.name, row.contract, row.chain, row.slug)
