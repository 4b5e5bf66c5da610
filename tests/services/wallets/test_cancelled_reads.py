"""Reads from providers end when the one who waits for them is cancelled."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateways import Gateways
from models import now
from services.wallets import chain_checks, names
from services.wallets.watched_challenge import OpenChallenge, Point

WALLET = "0x" + "12" * 20


class Silent:
    """A provider that never answers, and how many questions it still holds."""

    def __init__(self) -> None:
        self.asked: asyncio.Event = asyncio.Event()
        self.held: int = 0

    async def never(self, *_: object) -> Any:
        self.held += 1
        self.asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.held -= 1


async def check(silent: Silent) -> None:
    transactions = SimpleNamespace(chains=lambda: ["base"], nonces=silent.never)
    outside = cast("Gateways", SimpleNamespace(transactions=transactions))
    points = {"base": Point(nonce=0, block=1, first_block=1)}
    await chain_checks.check_challenges(outside, [OpenChallenge(1, 1, "evm", WALLET, "code", 1, now(), points)])


async def name(silent: Silent) -> None:
    outside = cast("Gateways", SimpleNamespace(names=SimpleNamespace(primary=silent.never)))
    await names.primary_names(outside, [WALLET])


@pytest.mark.parametrize("read", [check, name])
async def test_a_cancelled_read_leaves_no_question_behind(read: Callable[[Silent], Awaitable[None]]) -> None:
    silent = Silent()
    reading = asyncio.ensure_future(read(silent))
    await silent.asked.wait()
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    assert (reading.cancelled(), silent.held) == (True, 0)
