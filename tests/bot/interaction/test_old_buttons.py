"""Buttons below a challenge that has ended since."""

from typing import Any

import pytest

from bot.commands import verify
from bot.messages.reply import Reply
from services.wallets.ownership import Verdict
from services.wallets.wallets import ChallengeView
from tests.bot.test_sentences import ADDRESS, ASKED, Search
from tests.bot.test_sentences import search as search

NOTE = "What you were shown before no longer counts. From now on, this does:\n\n"


async def checked(search: Search, monkeypatch: pytest.MonkeyPatch, method: str, *, still_open: bool) -> Reply:
    """Return the answer to Check now."""

    async def challenge(*_: object) -> ChallengeView:
        return ASKED

    async def is_open(*_: object) -> bool:
        return still_open

    async def is_verified(*_: object) -> bool:
        return False

    async def nothing(*_: object) -> None: ...

    async def verdict(*_: object) -> Verdict:
        return Verdict(False, "Nothing was seen yet.", again=True)

    replaced: dict[str, Any] = {
        "challenge": challenge, "has_open_challenge": is_open, "is_verified": is_verified, "follow": nothing,
        "verify": verdict,
    }  # fmt: skip
    for name, value in replaced.items():
        monkeypatch.setattr(verify.wallets, name, value)
    monkeypatch.setattr(verify.rate_limits, "spend", nothing)
    reply = await search.cog._check(search.context(ADDRESS), ADDRESS, method)
    for task in search.cog.tasks():
        task.cancel()
    return reply


async def test_a_check_after_the_code_has_expired_shows_the_new_amount_and_says_so(
    search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = await checked(search, monkeypatch, "transaction", still_open=False)
    assert reply.text.startswith(NOTE + "Send **exactly ")
    assert ADDRESS in reply.text
    assert [one.label for one in reply.buttons] == ["Check now", "I have the hash"]


@pytest.mark.parametrize(("method", "still_open"), [("transaction", True), ("opensea_bio", False)])
async def test_an_open_code_and_a_bio_are_checked(
    search: Search, monkeypatch: pytest.MonkeyPatch, method: str, still_open: bool
) -> None:
    # A bio with the member's name proves the wallet without a code, so it is read in any case.
    reply = await checked(search, monkeypatch, method, still_open=still_open)
    assert reply.text.startswith("Nothing was seen yet.")
