"""Where a collection is: whether a contract is one on its chain, and if not, on which other chain it is."""

import asyncio
from collections.abc import Sequence

from gateways import Gateways
from gateways.chains.catalogue import CHAINS as FACTS
from gateways.transport.errors import ProviderError
from services.core.addresses import AddressRefused, is_solana, parse_evm, shorten
from services.core.chain_names import FORM_ORDER, chain_title
from services.core.collection_views import CollectionView
from services.core.errors import CollectionElsewhere, CollectionNotFound, FieldRefused
from settings import settings

SOLANA = "solana"
LOOK_SECONDS = 8.0
"""For all other chains at once; one that does not answer by then is not known."""
MOST_OFFERED = 6


def asked_chain(chain: str) -> str:
    """The chain, if rules can ask about it; FieldRefused otherwise."""
    wanted = chain.strip().lower()
    if not wanted:
        raise FieldRefused("blockchain", "Blockchain is required")
    if wanted not in FORM_ORDER:
        raise FieldRefused("blockchain", f"Collections on {chain_title(wanted[:40])} cannot be used in rules.")
    if not usable(wanted):
        raise FieldRefused("blockchain", f"Rules on {chain_title(wanted)} are not available here.")
    return wanted


def usable(chain: str) -> bool:
    """Whether rules may name the chain and a node is set for it."""
    return chain in FORM_ORDER and bool(settings().rpc.get(chain))


def address_on(chain: str, text: str) -> str:
    """The address in the chain's own form. Raises AddressRefused."""
    if chain != SOLANA:
        return parse_evm(text)
    given = text.strip()
    if not is_solana(given):
        raise AddressRefused("That is not an address on Solana.")
    return given


def belongs_to(contract: str, chain: str) -> bool:
    """Whether an address has the form of the chain's family."""
    return is_solana(contract) == (FACTS[chain].family == SOLANA)


async def described(outside: Gateways, chain: str, contract: str) -> CollectionView:
    """The collection as its contract describes itself.

    Raises CollectionElsewhere where it is on other chains instead, CollectionNotFound, and ProviderError.
    """
    if not belongs_to(contract, chain):
        raise await _elsewhere(outside, chain, contract, f"{shorten(contract)} is no address on {chain_title(chain)}.")
    standard = await outside.chains.contract_standard(chain, contract)
    where = f"{shorten(contract)} on {chain_title(chain)}"
    if standard == "none":
        what = "collection" if chain == SOLANA else "contract"
        raise await _elsewhere(outside, chain, contract, f"There is no {what} at {where}.", nothing=True)
    if standard is None:
        about = f"The contract {where} does not say that it is an NFT collection."
        raise await _elsewhere(outside, chain, contract, about)
    return await named_by_itself(outside, chain, contract)


async def named_by_itself(outside: Gateways, chain: str, contract: str) -> CollectionView:
    """The collection under the name that its contract gives; its address, shortened, where it gives none."""
    name = await outside.chains.contract_name(chain, contract)
    return CollectionView(name or shorten(contract), contract, chain)


def several(message: str, offers: Sequence[CollectionView]) -> FieldRefused:
    """An error that lists which collections may be meant, with whole addresses to copy."""
    listed = ", ".join(f"{one.contract_address} on {chain_title(one.blockchain)}" for one in offers[:MOST_OFFERED])
    more = ", …" if len(offers) > MOST_OFFERED else ""
    return FieldRefused("input", f"{message} Paste the address of the one you mean: {listed}{more}.", offers)


async def _elsewhere(
    outside: Gateways, chain: str, contract: str, about: str, *, nothing: bool = False
) -> CollectionNotFound:
    """What to say about an address that is no collection on its chain, after a look at all the others."""
    others = [other for other in FORM_ORDER if other != chain and usable(other) and belongs_to(contract, other)]
    found = await asyncio.gather(*(_standard(outside, other, contract) for other in others))
    there = [
        other for other, standard in zip(others, found, strict=True) if standard is not None and standard != "none"
    ]
    if there:
        offers = [await _named(outside, other, contract) for other in there]
        names = " and ".join(f"{one.name} on {chain_title(one.blockchain)}" for one in offers)
        return CollectionElsewhere(f"{about} The same address is {names}: choose that chain.", offers)
    silent = [chain_title(other) for other, standard in zip(others, found, strict=True) if standard is None]
    if silent:
        return CollectionNotFound(f"{about} Is it a wallet's address, or is it on {' or '.join(silent)}?")
    if nothing:
        also = " Nor is there on any other chain here." if others else ""
        return CollectionNotFound(
            f"{about}{also} It looks like a wallet's address: paste the collection's own contract."
        )
    return CollectionNotFound(f"{about} Paste the collection's own contract.")


async def _standard(outside: Gateways, chain: str, contract: str) -> str | None:
    """The contract's standard, "none" for what is no collection; None when that cannot be learned in time."""
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
