"""Lists of an indexer: a read asks for a few, and every owner has a turn."""

import asyncio
from datetime import UTC, datetime
from typing import Any, cast

from gateways.chains.indexer import Listed
from gateways.evm.rpc.node import Head
from gateways.evm.tokens.read_progress import MOST_LISTINGS, TokenRead


async def test_every_owner_is_listed_some_time() -> None:
    owners = tuple(f"0x{number:040x}" for number in range(MOST_LISTINGS + 5))
    asked = set[str]()

    async def listing(owner: str) -> Listed | str:
        asked.add(owner)
        return "nothing that helps"

    for _ in range(100):
        until = asyncio.get_running_loop().time() + 10
        head = Head(1, datetime.now(UTC))
        read = TokenRead(cast(Any, None), cast(Any, None), listing, head, bytes(20), owners, None, {}, until)
        await read.listed(owners)
    assert asked == set(owners)
