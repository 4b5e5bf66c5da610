"""Find which collection a pasted text names: an address, or a page on OpenSea or Magic Eden in any form."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from gateways.chains.catalogue import CHAINS
from locales import _
from services.core.addresses import (
    EVM_LENGTH,
    SOLANA_LONGEST,
    SOLANA_SHORTEST,
    AddressRefused,
    is_solana,
    parse_evm,
    pasted,
)

OPENSEA, MAGIC_EDEN = "OpenSea", "Magic Eden"
SOLANA = "solana"
LONGEST = 500
# The marketplaces' hosts and page forms: docs/facts.md#opensea-pages, docs/facts.md#magic-eden-pages.
_HOSTS = {
    "opensea.io": OPENSEA,
    "www.opensea.io": OPENSEA,
    "magiceden.io": MAGIC_EDEN,
    "www.magiceden.io": MAGIC_EDEN,
    "magiceden.us": MAGIC_EDEN,
    "www.magiceden.us": MAGIC_EDEN,
}
_FORMER = {"matic": "polygon"}
"""Names of chains in older URLs (docs/facts.md#opensea-chain-names)."""
_SYMBOL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.!-]{0,199}")
_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,199}")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_HEX_ADDRESS = re.compile(r"0x[0-9a-f]{40}", re.IGNORECASE)


class LinkRefused(Exception):
    """The text names no collection that can be looked up; the message says what to paste instead."""


@dataclass(frozen=True, slots=True)
class CollectionReference:
    """The reference in a text, with its `chain` if given. One of the other fields is set.

    `contract` is a collection's address (hexadecimal in lower case), `slug` OpenSea's name for one, `symbol` Magic
    Eden's for one on Solana; `mint` is a single token on Solana.
    """

    chain: str | None = None
    contract: str | None = None
    slug: str | None = None
    symbol: str | None = None
    mint: str | None = None


@dataclass(frozen=True, slots=True)
class Site:
    """The base of a marketplace's pages: `host` with any non-default port, and the path in `folder`."""

    place: str
    host: str
    folder: tuple[str, ...] = ()


def site(place: str, url: str) -> Site:
    """Return the site whose pages begin with this URL."""
    parts = urlsplit(url)
    return Site(place, parts.netloc.lower(), tuple(_segments(parts.path)))


def is_link(text: str, sites: Iterable[Site] = ()) -> bool:
    """Return whether the text should be read as a URL: it names a marketplace, or has a scheme."""
    lowered = text.lower()
    hosts = (*_HOSTS, *(one.host for one in sites))
    return any(host in lowered for host in hosts) or _SCHEME.match(lowered) is not None


def is_address(text: str) -> bool:
    """Return whether the text has the length and form of an address; only `read` validates it."""
    if text[:2] == "0x":
        return len(text) == EVM_LENGTH
    return SOLANA_SHORTEST <= len(text) <= SOLANA_LONGEST and text.isascii() and text.isalnum()


def read(text: str, sites: Iterable[Site] = ()) -> CollectionReference:
    """Return what the text names; pages must be on the marketplaces' hosts or on `sites`. Raises LinkRefused."""
    given = pasted(text)
    sites = tuple(sites)
    if len(given) > LONGEST:
        raise LinkRefused(_("That is too long for an address or a collection's URL."))
    if is_link(given, sites):
        return _page(given, sites)
    if is_solana(given):
        return CollectionReference(SOLANA, given)
    return CollectionReference(contract=_contract(given))


def _page(given: str, sites: tuple[Site, ...]) -> CollectionReference:
    try:
        parts = urlsplit(given if _SCHEME.match(given) else f"https://{given}")
        netloc = parts.netloc.lower()
        own = parts.scheme in {"http", "https"} and "@" not in netloc
        place = _HOSTS.get(parts.hostname or "") if own and parts.port in {None, 80, 443} else None
    except ValueError:
        raise LinkRefused(_("That URL cannot be read. Copy it again from the collection's page.")) from None
    path = _segments(parts.path)
    if place is None and own:
        for one in sites:
            if one.host == netloc and tuple(path[: len(one.folder)]) == one.folder:
                place, path = one.place, path[len(one.folder) :]
                break
    if place is None:
        raise LinkRefused(
            _("That URL is neither OpenSea's nor Magic Eden's. Paste a collection's page from one of them.")
        )
    return _opensea(path) if place == OPENSEA else _magic_eden(path)


def _segments(path: str) -> list[str]:
    return [unquote(part) for part in path.split("/") if part]


def _opensea(path: list[str]) -> CollectionReference:
    match path:
        case ["collection", slug, *_]:
            return CollectionReference(slug=_named(_SLUG, slug.lower()))
        case ["assets", contract, *_] if _HEX_ADDRESS.fullmatch(contract):
            # The oldest form, from when there was only one chain.
            return CollectionReference("ethereum", _contract(contract))
        case ["item" | "assets", chain, *rest] if _chain(chain) == SOLANA and rest:
            # On Solana each token has its own address; the collection's address may precede it.
            return CollectionReference(SOLANA, mint=_solana(rest[-1]))
        case ["item" | "assets", chain, contract, *_]:
            return CollectionReference(_chain(chain), _contract(contract))
        case ["collection" | "item" | "assets", *_] | []:
            raise LinkRefused(_("That URL is not a collection's page. Copy the one that has /collection/ in it."))
        case _:
            raise LinkRefused(
                _("That looks like a profile on OpenSea, not a collection. Copy the URL that has /collection/ in it.")
            )


def _magic_eden(path: list[str]) -> CollectionReference:
    match path:
        case ["marketplace", symbol, *_] | ["collections", "solana", symbol, *_]:
            return (
                CollectionReference(SOLANA, symbol)
                if is_solana(symbol)
                else CollectionReference(SOLANA, symbol=_named(_SYMBOL, symbol))
            )
        case ["item-details", mint] | ["item-details", "solana", mint, *_]:
            return CollectionReference(SOLANA, mint=_solana(mint))
        case ["collections", chain, slug, *_] if not slug.lower().startswith("0x"):
            return CollectionReference(_chain(chain), slug=_named(_SLUG, slug.lower()))
        case ["collections" | "item-details", chain, contract, *_]:
            return CollectionReference(_chain(chain), _contract(contract))
        case ["u", *_] | [_]:
            raise LinkRefused(
                _("That looks like a profile on Magic Eden, not a collection. Copy the collection's own URL.")
            )
        case _:
            raise LinkRefused(
                _("That URL is not a collection's page. Copy the one that has /collections/ or /marketplace/ in it.")
            )


def _solana(text: str) -> str:
    if not is_solana(text):
        raise LinkRefused(_("That URL names no token on Solana. Copy it again from the token's page."))
    return text


def _named(form: re.Pattern[str], text: str) -> str:
    if not form.fullmatch(text):
        raise LinkRefused(_("That URL names no collection. Copy it again from the collection's page."))
    return text


def _chain(name: str) -> str:
    """Return our key of a chain that a URL names by that key, by OpenSea's name or by a former name."""
    lowered = name.lower()
    known = (key for key, chain in CHAINS.items() if lowered in {key, chain.opensea})
    return _FORMER.get(lowered) or next(known, lowered)


def _contract(text: str) -> str:
    try:
        return parse_evm(text)
    except AddressRefused as fault:
        if text[:2].lower() == "0x":
            raise LinkRefused(str(fault)) from None
        raise LinkRefused(
            _("Paste a contract's address (0x and 40 characters) or a collection's URL on OpenSea or Magic Eden.")
        ) from None
