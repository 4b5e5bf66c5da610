"""Checks before an index's empty answer is believed: that its lists work, and that the node itself knows no more."""

from gateways.evm.rpc.errors import Unsupported
from gateways.solana.coin_scans import IS_TOO_LARGE
from gateways.solana.das_assets import asset
from gateways.solana.das_lists import by_collection, by_owner, first_page
from gateways.solana.node import SolanaNode
from gateways.solana.token_accounts import TOKEN_PROGRAMS, token_accounts
from gateways.transport.errors import ProviderConfused
from locales import N_

ANY = "any"
KNOWN_COLLECTION = "J1S9H3QjnRtBbbuD4HjPV6RpRhwuk4zKbxsnCHuTgh9w"
"""Mad Lads, which has been on mainnet for years, so a working index lists some of it (docs/facts.md#solana-das)."""
WITNESSES = 10
SILENT = "the index lists nothing for anybody"
UNGROUPED = "its list of a collection contradicts itself: no asset on it is in the collection"
NOT_INDEXED = "the index lists nothing of this collection"
LOST = N_("the index no longer knows a token that was seen here")
CONTRADICTS = N_("the index names an owner whose list lacks the token")
NODE_KNOWS_MORE = N_("the node knows a token that the index does not list")


class NotIndexed(ProviderConfused):
    """The index lists nothing of a collection: the collection is new, does not exist, or is unknown to this index."""


async def doubt_silence(node: SolanaNode, collection: str, *, owners_lists: bool) -> None:
    """Raise ProviderConfused if an empty list cannot be believed: the index must prove that its lists work.

    It must list some assets of the collection (for ANY, of KNOWN_COLLECTION), and say of one of them that it is in it.
    Unless `owners_lists` says that owners' lists have shown something, it must also list something for an owner of
    these assets. An empty collection is believed only if its own asset says that it is empty, as Core's do, because
    lists of whole collections have been missing before.
    """
    group = KNOWN_COLLECTION if collection == ANY else collection
    page = await first_page(node, by_collection(group), WITNESSES)
    if not page.assets and collection == ANY:
        raise ProviderConfused(node.name, SILENT)
    if not page.assets:
        own = await asset(node, collection)
        if own is None or own.size != 0:
            raise NotIndexed(node.name, NOT_INDEXED)
        await doubt_silence(node, ANY, owners_lists=owners_lists)
        return
    counting = [one for one in page.assets if one.counts]
    if collection != ANY and counting and not any(collection in one.named for one in counting):
        raise ProviderConfused(node.name, UNGROUPED)
    if owners_lists:
        return
    witnesses = [one.owner for one in page.assets if one.owner]
    if witnesses:
        if not (await first_page(node, by_owner(witnesses[0]), 1)).assets:
            raise ProviderConfused(node.name, SILENT)
    elif collection == ANY:
        raise ProviderConfused(node.name, SILENT)
    else:
        await doubt_silence(node, ANY, owners_lists=False)


async def mints_of(node: SolanaNode, owner: str) -> frozenset[str]:
    """Return the mints of which the owner's token accounts hold exactly one indivisible token, as with an NFT.

    A token program that the endpoint does not support is left out; so are both where it does not support the method.
    Raises ProviderError, also for an owner with more accounts than the node returns.
    """
    found = set[str]()
    for program in TOKEN_PROGRAMS:
        try:
            _, accounts = await token_accounts(node, owner, {"programId": program})
        except Unsupported as refused:
            if IS_TOO_LARGE.search(str(refused)):
                raise
            continue
        for info in accounts:
            amount = info.inner("tokenAmount")
            if amount.text("amount") == "1" and amount.number("decimals") == 0:
                found.add(info.text("mint"))
    return frozenset(found)
