"""Requirements that our own tables answer: lists of addresses, and proven wallets. Pure functions.

No provider can be wrong about them, so the answer is yes or no, and unknown only where a list is not stored. No second
source has to confirm it. The breaker counts a loss by them like any other.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from locales import N_
from services.core.answer import Answer
from services.rules.types.address_list import AddressList
from services.rules.types.any_wallet import FAMILIES, AnyWallet
from services.rules.types.declaration import Details

SOURCE = "list"
"""The source of these answers in the evidence."""
NO_WALLET = N_("no wallet counts here")
NO_LIST = N_("the list is not stored")


@dataclass(frozen=True, slots=True)
class OwnTables:
    """What our tables say about a server's wallets, and when they were read."""

    lists: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """Digest of a list → the wallets that are on it; a list that is not stored is absent."""
    read_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class OwnAnswer:
    """An answer, and for each wallet that counts whether it supports a yes."""

    answer: Answer
    wallets: Mapping[str, bool]
    reason: str | None = None


def families_of(details: Details | None) -> frozenset[str]:
    """Return the families of wallets that a condition without a chain is about."""
    family = details.family if isinstance(details, AnyWallet) else ""
    return frozenset({family} if family else FAMILIES)


def answer(details: Details | None, wallets: Iterable[tuple[str, str]], tables: OwnTables) -> OwnAnswer:
    """Answer a condition for wallets (`(scope, address)`); an account bound to one chain counts like any other.

    Delegated vaults never count: neither a list nor a proof has a chain on which they could have delegated.
    """
    families = families_of(details)
    mine = list(dict.fromkeys(address for scope, address in wallets if scope.partition(":")[0] in families))
    if not mine:
        return OwnAnswer(Answer.NO, {}, NO_WALLET)
    if not isinstance(details, AddressList):
        return OwnAnswer(Answer.YES, dict.fromkeys(mine, True))
    listed = tables.lists.get(details.list)
    if listed is None:
        return OwnAnswer(Answer.UNKNOWN, {}, NO_LIST)
    found = {address: address in listed for address in mine}
    return OwnAnswer(Answer.YES if any(found.values()) else Answer.NO, found)
