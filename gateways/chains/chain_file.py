"""Read chains from a TOML file: one table per chain, every field checked."""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from setting_checks import is_readable
from settings import SettingsError

DEEPEST_STATE = 128
"""Blocks whose state a node without an archive keeps; confirmed and settled blocks must be less deep than this."""
SLOWEST_BLOCKS = 3600
_KEY = re.compile(r"[a-z][a-z0-9]{1,19}")
_ADDRESS = re.compile(r"0x(?!0{40})[0-9a-fA-F]{40}")
_COIN = re.compile(r"[A-Za-z0-9.$]{1,12}")
_NAME_ELSEWHERE = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")


class ChainsRefused(SettingsError):
    """A file of chains is not valid; the text names the file, the chain and the field."""


@dataclass(frozen=True, slots=True)
class Chain:
    """One chain and its properties.

    `block_seconds` is the usual time between blocks. `confirmations` is how many a transaction needs to count.
    `settled_after` is how many blocks have to follow a block before an answer at that block can cost somebody a role.
    `multicall3` and `delegates` (delegate.xyz v2) are contracts known to exist on the chain. `opensea` and `alchemy`
    are the chain's names at those providers; None where they do not have the chain. `l1_block_number` is true where the
    EVM's NUMBER is not the chain's own block number (Arbitrum and its Orbit relatives). Fees are paid in `coin`.
    `pauses` is true where the chain makes no blocks while nothing happens, so that its newest block may be old.
    `contracts_send` is true where smart-contract accounts are the sender of their transactions, as other accounts are
    (docs/facts.md#accounts-on-abstract).
    A pasted link to `explorer` or to one of `other_explorers` names the chain.
    `form_place` is the chain's place in the rule form; 0, for a chain of CHAINS_FILE, puts it after all others.
    """

    key: str
    title: str
    chain_id: int
    coin: str
    explorer: str
    block_seconds: float
    confirmations: int
    settled_after: int
    other_explorers: tuple[str, ...] = ()
    multicall3: str | None = None
    delegates: str | None = None
    opensea: str | None = None
    alchemy: str | None = None
    l1_block_number: bool = False
    pauses: bool = False
    contracts_send: bool = False
    family: Literal["evm", "solana"] = "evm"
    form_place: int = 0

    @property
    def explorer_hosts(self) -> frozenset[str]:
        """The hosts of all its explorers."""
        return _hosts(self.explorer, *self.other_explorers)


REQUIRED = ("title", "chain_id", "coin", "explorer", "block_seconds", "confirmations", "settled_after")
OPTIONAL = (
    "other_explorers", "multicall3", "delegates", "opensea", "alchemy", "l1_block_number", "pauses", "contracts_send",
)  # fmt: skip
UNIQUE = ("title", "chain_id", "explorer", "other_explorers", "opensea", "alchemy")
"""The fields that identify a chain to people, nodes or providers; no two chains may share a value."""


def own_chains(path: Path) -> dict[str, Chain]:
    """Return the product's own chains. The file is part of the product, and a test checks its content."""
    read = cast("Mapping[str, Mapping[str, Any]]", tomllib.loads(path.read_text()))
    return {key: _chain(key, entry) for key, entry in read.items()}


def added_chains(path: Path, known: Mapping[str, Chain]) -> dict[str, Chain]:
    """Return the chains that an operator's file adds to the known ones.

    Raises ChainsRefused with a sentence for each fault.
    """
    try:
        read = cast("Mapping[str, Any]", tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as fault:
        raise ChainsRefused(f"CHAINS_FILE {path} cannot be read: {fault.strerror}.") from None
    except ValueError as fault:  # not UTF-8, or not TOML
        raise ChainsRefused(f"CHAINS_FILE {path} is not TOML: {fault}.") from None
    found: dict[str, Chain] = {}
    faults: list[str] = []
    for key, entry in read.items():
        wrong = list(_faults(key, entry, known))
        if not wrong:
            chain = _chain(key, entry)
            wrong = [f"[{key}] {field}: {said}" for field, said in _taken(chain, {**known, **found})]
            found[key] = chain
        faults += wrong
    if faults:
        raise ChainsRefused(f"CHAINS_FILE {path}: {' '.join(faults)}")
    return found


def _chain(key: str, entry: Mapping[str, Any]) -> Chain:
    return Chain(key, **{name: _plain(value) for name, value in entry.items()})


def _plain(value: Any) -> Any:
    """Return a value in its normal form: contracts' addresses in lower case, URLs without a slash at the end."""
    if isinstance(value, list):
        return tuple(_plain(one) for one in cast("list[Any]", value))
    if not isinstance(value, str):
        return value
    return value.lower() if _ADDRESS.fullmatch(value) else value.rstrip("/")


def _faults(key: str, entry: object, known: Mapping[str, Chain]) -> Iterator[str]:
    """Yield a sentence for each field of one table that is wrong, whatever the other fields are."""
    if key in known:
        yield f"[{key}]: the product has this chain; a file adds chains and changes none."
        return
    if not _KEY.fullmatch(key):
        yield f"[{key}]: a chain's key is 2 to 20 lower-case letters and digits, the first one a letter."
        return
    if not isinstance(entry, dict):
        yield f"{key}: a chain is a table of its own, as in [{key}]."
        return
    given = cast("Mapping[str, Any]", entry)
    for field in REQUIRED:
        if field not in given:
            yield f"[{key}] {field}: it is missing."
    for field, value in given.items():
        if field not in CHECKS:
            yield f"[{key}] {field}: there is no such field; there are {', '.join((*REQUIRED, *OPTIONAL))}."
        elif said := CHECKS[field](value):
            yield f"[{key}] {field}: {said}"
    confirmations, settled = given.get("confirmations"), given.get("settled_after")
    if isinstance(confirmations, int) and isinstance(settled, int) and settled < confirmations:
        yield f"[{key}] settled_after: it is at least as many blocks as confirmations ({confirmations})."


def _taken(chain: Chain, known: Mapping[str, Chain]) -> Iterator[tuple[str, str]]:
    """Yield each field whose value another chain has, with a sentence that names that chain."""
    for field in UNIQUE:
        values = _identities(chain, field)
        for other in known.values():
            theirs = other.explorer_hosts if field in ("explorer", "other_explorers") else _identities(other, field)
            yield from ((field, f"{value} is {other.key}'s.") for value in sorted(values & theirs))


def _identities(chain: Chain, field: str) -> frozenset[str]:
    """Return the texts by which a field is compared: of explorers the hosts, by which pasted links name the chain."""
    if field == "explorer":
        return _hosts(chain.explorer)
    if field == "other_explorers":
        return _hosts(*chain.other_explorers)
    value: object = getattr(chain, field)
    return frozenset() if value is None else frozenset({str(value).lower()})


def _hosts(*urls: str) -> frozenset[str]:
    return frozenset(host for url in urls if (host := urlsplit(url).hostname))


def _title(value: object) -> str | None:
    good = isinstance(value, str) and value.isprintable() and value == value.strip() and 1 <= len(value) <= 40
    return None if good else "it is a text of 1 to 40 characters in one line."


def _explorer(value: object) -> str | None:
    parts = urlsplit(value) if isinstance(value, str) and is_readable(value) else None
    good = parts is not None and parts.scheme == "https" and parts.hostname and not (parts.query or parts.fragment)
    return None if good else "it is the https:// address of a block explorer."


def _explorers(value: object) -> str | None:
    good = isinstance(value, list) and not any(map(_explorer, cast("list[object]", value)))
    return None if good else "it is a list of https:// addresses of block explorers."


def _seconds(value: object) -> str | None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    return None if good and 0 < cast("float", value) <= SLOWEST_BLOCKS else "it is a number of seconds, 3600 at most."


def _whole(most: int, said: str) -> Callable[[object], str | None]:
    def check(value: object) -> str | None:
        return None if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most else said

    return check


def _matching(pattern: re.Pattern[str], said: str) -> Callable[[object], str | None]:
    def check(value: object) -> str | None:
        return None if isinstance(value, str) and pattern.fullmatch(value) else said

    return check


def _switch(value: object) -> str | None:
    return None if isinstance(value, bool) else "it is true or false."


_BLOCKS = _whole(DEEPEST_STATE - 1, f"it is a whole number of blocks, from 1 to {DEEPEST_STATE - 1}.")
_CONTRACT = _matching(_ADDRESS, "it is a contract's address: 0x and 40 hexadecimal digits.")
_ELSEWHERE = _matching(_NAME_ELSEWHERE, "it is the provider's name of the chain: lower-case letters, digits, - and _.")
CHECKS: Mapping[str, Callable[[object], str | None]] = {
    "title": _title,
    "chain_id": _whole(2**63 - 1, "it is a whole number above 0."),
    "coin": _matching(_COIN, "it is a coin's symbol, such as ETH: 1 to 12 letters and digits."),
    "explorer": _explorer,
    "block_seconds": _seconds,
    "confirmations": _BLOCKS,
    "settled_after": _BLOCKS,
    "other_explorers": _explorers,
    "multicall3": _CONTRACT,
    "delegates": _CONTRACT,
    "opensea": _ELSEWHERE,
    "alchemy": _ELSEWHERE,
    "l1_block_number": _switch,
    "pauses": _switch,
    "contracts_send": _switch,
}
"""For each field of an operator's file, a function that says what is wrong with a value; None where nothing is."""
