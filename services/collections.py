"""Collections: found by address or by a marketplace's page, remembered with the name people know them by."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import tuple_
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col, select

from gateways import Gateways
from gateways.errors import NotThere, ProviderError, ProviderRefused, Unauthorized
from gateways.marketplaces import CollectionFacts
from models import Collection, now
from models.database import AsyncSession
from services.addresses import AddressRefused, parse_evm, shorten
from services.collection_urls import MAGIC_EDEN, OPENSEA, LinkRefused, Reference, Site, is_address, is_link, read, site
from services.errors import CollectionNotFound, FieldRefused, unavailable
from services.rule_form import CHAINS, SUPPORTED_CHAINS, chain_title
from settings import settings

FRESH_FOR = timedelta(minutes=10)
"""How long a name is taken from our own table before the marketplace is asked again."""
FROM_OPENSEA, FROM_CONTRACT = "OpenSea", "contract"


@dataclass(frozen=True, slots=True)
class CollectionView:
    """A collection on one chain; `slug` is OpenSea's, None while that is not known."""

    name: str
    contract_address: str
    blockchain: str
    slug: str | None = None


def _sites() -> tuple[Site, ...]:
    chosen = settings()
    return site(OPENSEA, chosen.opensea_url), site(MAGIC_EDEN, chosen.magiceden_url)


def is_whole(text: str) -> bool:
    """Whether a text that somebody is typing is an address or a page's URL by its look, and so worth looking up."""
    return is_address(text) or is_link(text, _sites())


async def parse(
    db: AsyncSession, outside: Gateways, given: str, blockchain: str, *, no_older_than: timedelta = FRESH_FOR
) -> CollectionView:
    """The collection that a person means by an address on `blockchain`, or by a marketplace's page.

    A page of one token means the token's collection. A page that names its chain goes before `blockchain`. A name that
    was asked for within `no_older_than` is not asked for again.
    Raises FieldRefused, CollectionNotFound, ProviderUnavailable.
    """
    if not given.strip():
        raise FieldRefused("input", "Enter a contract address or collection URL first")
    try:
        named = read(given, _sites())
    except LinkRefused as fault:
        raise FieldRefused("input", str(fault)) from None
    if named.contract is None:
        return await _by_slug(db, outside, named, blockchain)
    return await _by_contract(db, outside, _asked_chain(named.chain or blockchain), named.contract, no_older_than)


async def trait_types(db: AsyncSession, outside: Gateways, contract: str, blockchain: str) -> list[str]:
    """The kinds of traits that OpenSea lists for a collection, in order of the alphabet.

    Raises FieldRefused, CollectionNotFound, ProviderUnavailable.
    """
    return sorted(await _traits(db, outside, contract, blockchain), key=str.casefold)


async def trait_values(db: AsyncSession, outside: Gateways, contract: str, blockchain: str, kind: str) -> list[str]:
    """The values of one kind of trait; none for a kind whose values are numbers, of which OpenSea only tells bounds.

    Raises FieldRefused, CollectionNotFound (also for an unknown kind), ProviderUnavailable.
    """
    known = await _traits(db, outside, contract, blockchain)
    if kind not in known:
        raise CollectionNotFound(f"OpenSea lists no trait {kind[:80]} for this collection.")
    return sorted(known[kind], key=str.casefold)


async def names(db: AsyncSession, places: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """What is known: `(chain, contract)` → the collection's name."""
    wanted = sorted(set(places))
    if not wanted:
        return {}
    rows = await db.exec(select(Collection).where(tuple_(col(Collection.chain), col(Collection.contract)).in_(wanted)))
    return {(row.chain, row.contract): row.name for row in rows.all()}


def _asked_chain(chain: str) -> str:
    """The chain, if rules can ask about it; FieldRefused otherwise."""
    wanted = chain.strip().lower()
    if not wanted:
        raise FieldRefused("blockchain", "Blockchain is required")
    if wanted not in CHAINS:
        raise FieldRefused("blockchain", f"Collections on {chain_title(wanted[:40])} cannot be used in rules.")
    if not _usable(wanted):
        raise FieldRefused("blockchain", f"Rules on {chain_title(wanted)} are not available here.")
    return wanted


def _usable(chain: str) -> bool:
    return chain in SUPPORTED_CHAINS and bool(settings().rpc.get(chain))


async def _by_slug(db: AsyncSession, outside: Gateways, named: Reference, blockchain: str) -> CollectionView:
    slug = named.slug or ""
    only = _asked_chain(named.chain) if named.chain else None
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
    chain, contract = _chosen(found, only, blockchain.strip().lower())
    return await _keep(db, CollectionView(found.name or slug, contract, chain, found.slug), FROM_OPENSEA)


def _chosen(found: CollectionFacts, only: str | None, preferred: str) -> tuple[str, str]:
    """Which of a collection's contracts is meant: on the page's chain, else on the form's, else the only one."""
    name = found.name or found.slug
    if not found.contracts:
        raise CollectionNotFound(f"OpenSea lists no contract for {name}. Paste the contract's address.")
    fitting = [(chain, contract) for chain, contract in found.contracts if _usable(chain) and only in {None, chain}]
    if not fitting:
        where = ", ".join(sorted({chain_title(chain[:40]) for chain, _ in found.contracts})[:5])
        wanted = f"not on {chain_title(only)}" if only else "which rules cannot ask about here"
        raise FieldRefused("blockchain", f"{name} is on {where}, {wanted}.")
    fitting = [place for place in fitting if place[0] == preferred] or fitting
    if len(fitting) > 1:
        several = ", ".join(f"{shorten(contract)} on {chain_title(chain)}" for chain, contract in fitting[:4])
        raise FieldRefused("input", f"{name} has several contracts ({several}). Paste the address of the one you mean.")
    try:
        return fitting[0][0], parse_evm(fitting[0][1])
    except AddressRefused:
        raise CollectionNotFound(f"OpenSea lists no contract for {name}. Paste the contract's address.") from None


async def _by_contract(
    db: AsyncSession, outside: Gateways, chain: str, contract: str, no_older_than: timedelta = FRESH_FOR
) -> CollectionView:
    row = await _stored(db, chain, contract)
    if row is not None and now() - row.updated_at < no_older_than:
        return _view(row)
    try:
        return await _keep(db, await _on_opensea(outside, chain, contract), FROM_OPENSEA)
    except ProviderError:
        pass  # OpenSea does not know it, or does not answer: the contract can speak for itself
    try:
        said = await _of_contract(outside, chain, contract)
    except ProviderError as fault:
        if row is not None:
            return _view(row)
        raise unavailable(fault) from fault
    if row is not None and row.source == FROM_OPENSEA:
        # What people call it, even if OpenSea does not answer just now.
        return _view(row)
    return await _keep(db, said, FROM_CONTRACT)


async def _on_opensea(outside: Gateways, chain: str, contract: str) -> CollectionView:
    """The collection by its name on OpenSea, which is often nicer than the contract's. Raises ProviderError."""
    found = await outside.opensea.contract(chain, contract)
    try:
        name = (await outside.opensea.collection(found.slug)).name if found.slug else ""
    except ProviderError:
        name = ""
    return CollectionView(name or found.name or shorten(contract), contract, chain, found.slug or None)


async def _of_contract(outside: Gateways, chain: str, contract: str) -> CollectionView:
    """The collection as its contract describes itself. Raises CollectionNotFound, ProviderError."""
    standard = await outside.chains.contract_standard(chain, contract)
    if standard == "none":
        raise CollectionNotFound(
            f"There is no contract at {shorten(contract)} on {chain_title(chain)}. "
            "Is it a wallet's address, or is the collection on another chain?"
        )
    if standard is None:
        raise CollectionNotFound(
            f"The contract {shorten(contract)} on {chain_title(chain)} does not say that it is an NFT collection."
        )
    name = await outside.chains.contract_name(chain, contract)
    return CollectionView(name or shorten(contract), contract, chain)


async def _traits(db: AsyncSession, outside: Gateways, contract: str, blockchain: str) -> dict[str, tuple[str, ...]]:
    try:
        address = parse_evm(contract)
    except AddressRefused as fault:
        raise FieldRefused("contractAddress", str(fault)) from None
    known = await _by_contract(db, outside, _asked_chain(blockchain), address)
    try:
        slug = known.slug or (await outside.opensea.contract(known.blockchain, address)).slug
        return dict(await outside.opensea.traits(slug))
    except (NotThere, ProviderRefused) as fault:
        if isinstance(fault, Unauthorized):
            raise unavailable(fault) from fault
        raise CollectionNotFound(f"OpenSea lists no traits for {known.name}.") from None
    except ProviderError as fault:
        raise unavailable(fault) from fault


async def _stored(db: AsyncSession, chain: str, contract: str) -> Collection | None:
    found = await db.exec(select(Collection).where(Collection.chain == chain, Collection.contract == contract))
    return found.first()


async def _keep(db: AsyncSession, found: CollectionView, source: str) -> CollectionView:
    values = {
        "chain": found.blockchain, "contract": found.contract_address, "name": found.name, "slug": found.slug,
        "source": source, "updated_at": now(),
    }  # fmt: skip
    statement = insert(Collection).values(**values)
    changed = {name: statement.excluded[name] for name in ("name", "slug", "source", "updated_at")}
    await db.execute(statement.on_conflict_do_update(index_elements=["chain", "contract"], set_=changed))
    return found


def _view(row: Collection) -> CollectionView:
    return CollectionView(row.name, row.contract, row.chain, row.slug)
