"""Buttons below a challenge that has ended since, and of messages that another version of the bot has sent."""

from types import SimpleNamespace
from typing import Any, cast

import nextcord
import pytest

from bot.commands import cogs, verify
from bot.interaction import answering
from bot.interaction.answering import InteractionContext
from bot.interaction.presses import Presses
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


PRESS, FORM = nextcord.InteractionType.component, nextcord.InteractionType.modal_submit
UNREADABLE = [
    (PRESS, "holdfast:check"),
    (PRESS, "holdfast:check:opensea_bio"),
    (PRESS, f"holdfast:check:opensea_bio:{ADDRESS}:1"),
    (PRESS, "holdfast:check::"),
    (PRESS, "holdfast:address:transaction"),
    (PRESS, "holdfast:hash"),
    (PRESS, "holdfast:hash:1:2"),
    (PRESS, "holdfast:use"),
    (PRESS, "holdfast:use:2"),
    (PRESS, "holdfast:share:yes"),
    (PRESS, "holdfast:forget"),
    (PRESS, "holdfast:forget:1"),
    (PRESS, "holdfast:dropped"),
    (PRESS, "holdfast:dropped:x"),
    (PRESS, "holdfast:stake"),
    (PRESS, "holdfast:"),
    (PRESS, "holdfast"),
    (FORM, "holdfast:sent"),
    (FORM, "holdfast:sent:1:2"),
    (FORM, "holdfast:stake:1"),
    (FORM, "holdfast:check:opensea_bio:1"),
]


@pytest.mark.parametrize(("kind", "name"), UNREADABLE)
async def test_a_button_of_another_version_changes_nothing_and_says_where_a_new_one_is(
    monkeypatch: pytest.MonkeyPatch, kind: nextcord.InteractionType, name: str
) -> None:
    shown = list[Reply]()

    async def shows(_: object, reply: Reply, _question: object) -> bool:
        shown.append(reply)
        return True

    async def accepted(*_: object) -> bool:
        return True

    async def nothing(*_: object) -> list[object]:
        return []

    def member(*_: object, **__: object) -> None:
        raise AssertionError("nobody may be looked for: the button does not say what it does")

    monkeypatch.setattr(answering, "show", shows)
    monkeypatch.setattr(answering.delivery, "first", accepted)
    monkeypatch.setattr(answering.rate_limits, "spend_for_interaction", nothing)
    monkeypatch.setattr(answering, "_waiting", nothing)
    monkeypatch.setattr(InteractionContext, "find_member", member)
    presses = Presses()
    list(cogs(presses))
    user = SimpleNamespace(id=1, name="ada", discriminator="0")
    pressed = SimpleNamespace(
        id=7, type=kind, data={"custom_id": name, "components": []}, guild_id=1, guild=object(), user=user, locale="en",
        response=SimpleNamespace(defer=nothing, send_modal=nothing),
    )  # fmt: skip
    await presses.on_interaction(cast("nextcord.Interaction[nextcord.Client]", pressed))
    assert [reply.title for reply in shown] == ["That did not work"]
    assert "another version" in shown[0].text
