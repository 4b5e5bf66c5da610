"""A member who pastes the wrong transaction can paste the right one, and the automatic checks go on."""

import pytest

from bot.commands import verify
from services.wallets.ownership import Verdict
from tests.bot.test_sentences import ADDRESS, Search
from tests.bot.test_sentences import search as search

REFUSED = Verdict(False, "That is not a transaction hash.")


@pytest.mark.parametrize(("hash", "searches", "labels"), [("0xmine", 1, ["Check now", "I have the hash"]), ("", 0, [])])
async def test_a_wrong_hash_ends_no_search_and_leaves_the_buttons(
    search: Search, monkeypatch: pytest.MonkeyPatch, hash: str, searches: int, labels: list[str]
) -> None:
    async def verdict(*_: object) -> Verdict:
        return REFUSED

    async def is_open(*_: object) -> bool:
        return True

    async def spend(*_: object) -> None: ...

    monkeypatch.setattr(verify.wallets, "has_open_challenge", is_open)
    monkeypatch.setattr(verify.wallets, "verify", verdict)
    monkeypatch.setattr(verify.rate_limits, "spend", spend)
    search.begin(ADDRESS, "transaction")
    reply = await search.cog._check(search.context(ADDRESS), ADDRESS, "transaction", hash)
    assert (reply.title, reply.text) == ("Not verified", REFUSED.message)
    assert [one.label for one in reply.buttons] == labels
    assert len(search.cog.tasks()) == searches
    for task in search.cog.tasks():
        task.cancel()
