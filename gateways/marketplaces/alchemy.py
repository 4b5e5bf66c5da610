"""Alchemy's NFT API v3: the tokens listed for accounts and collections, as hints of what to check on the chain.

See docs/facts.md#alchemy-nft-api.
"""

import asyncio
from collections.abc import Iterable
from urllib.parse import quote

from gateways.chains.catalogue import CHAINS
from gateways.chains.indexer import ChainNotListed
from gateways.chains.token_sheet import LARGEST_ID
from gateways.marketplaces.client import DEADLINE, MarketWire, all_pages
from gateways.marketplaces.types import AccountItem, AccountItems
from gateways.transport.errors import ProviderConfused
from gateways.transport.json_shape import Shape

ALCHEMY = "Alchemy"
ITEMS_A_PAGE = 100
MOST_PAGES = 100
LARGEST_PAGE = 4_000_000
MOST_OWNER_PAGES, LARGEST_OWNER_PAGE = 20, 8_000_000
"""The most pages of a collection's owners, with 50,000 owners in each, and the most bytes of one page."""


class Alchemy:
    """The real client. `url` has {network} in place of a chain's name; the key is part of the path."""

    def __init__(self, url: str, api_key: str, *, deadline: float = DEADLINE) -> None:
        self._url, self._key = url.rstrip("/"), quote(api_key, safe="")
        self._wire = MarketWire(ALCHEMY, {}, deadline=deadline)

    async def close(self) -> None:
        """Close the connections."""
        await self._wire.close()

    async def account_nfts(self, chain: str, address: str) -> AccountItems:
        """Return all tokens that Alchemy lists for an account on a chain.

        GET getNFTsForOwner without metadata, in pages of 100 until there is no `pageKey`. Spam filters are never used,
        because the tokens that they hide count for rules. Raises ProviderError, also for a chain that Alchemy does not
        have, an account with more than 10,000 tokens, and pages that repeat.
        """
        base = self._call(chain, "getNFTsForOwner")
        first = f"{base}?owner={quote(address, safe='')}&withMetadata=false&pageSize={ITEMS_A_PAGE}"

        async def page(cursor: str) -> tuple[Iterable[AccountItem], str | None]:
            following = f"&pageKey={quote(cursor, safe='')}" if cursor else ""
            said = Shape(
                await self._wire.read(first + following, "account", largest=LARGEST_PAGE), "the account", ALCHEMY
            )
            items = [_item(Shape(item, "a token", ALCHEMY)) for item in said.items("ownedNfts")]
            return items, said.text_or_none("pageKey")

        return AccountItems(chain, address, ALCHEMY, await all_pages(ALCHEMY, page, MOST_PAGES, ITEMS_A_PAGE))

    async def contract_tokens(self, chain: str, contract: str, most: int) -> frozenset[int]:
        """Return the ids of all tokens of a contract for which Alchemy lists an owner.

        GET getOwnersForContract with balances, page after page. Raises ProviderError, also for a chain that Alchemy
        does not have, and for more than `most` tokens.
        """
        base = self._call(chain, "getOwnersForContract")
        first = f"{base}?contractAddress={quote(contract, safe='')}&withTokenBalances=true"
        found, cursor = set[int](), ""
        for _ in range(MOST_OWNER_PAGES):
            following = f"&pageKey={quote(cursor, safe='')}" if cursor else ""
            answer = await self._wire.read(first + following, "collection", largest=LARGEST_OWNER_PAGE)
            said = Shape(answer, "the owners", ALCHEMY)
            # In a thread, because a page may name fifty thousand tokens and would block the event loop.
            found |= await asyncio.to_thread(_of_owners, said)
            if len(found) > most:
                raise ProviderConfused(ALCHEMY, f"it lists more than {most} tokens for this collection")
            if not (cursor := said.text_or_none("pageKey") or ""):
                return frozenset(found)
        raise ProviderConfused(ALCHEMY, "its list of owners does not end")

    def _call(self, chain: str, name: str) -> str:
        network = CHAINS[chain].alchemy
        if network is None:
            raise ChainNotListed(ALCHEMY, CHAINS[chain].title)
        return f"{self._url.replace('{network}', network)}/{self._key}/{name}"


def _of_owners(said: Shape) -> set[int]:
    return {one for owner in said.items("owners") for one in _ids(Shape(owner, "an owner", ALCHEMY))}


def _ids(owner: Shape) -> Iterable[int]:
    for one in owner.items("tokenBalances"):
        text = Shape(one, "a balance", ALCHEMY).text("tokenId")
        try:
            number = int(text, 16) if text.startswith("0x") else int(text)
        except ValueError:
            number = -1
        if not 0 <= number <= LARGEST_ID:
            raise ProviderConfused(ALCHEMY, "it names a token whose id is not a number of 256 bits")
        yield number


def _item(token: Shape) -> AccountItem:
    """Return a listed token. Without metadata its contract is an address; with metadata, an object with an address."""
    contract = token.text_or_none("contractAddress") or token.inner("contract").text("address")
    return AccountItem(contract.lower(), token.text("tokenId"))
