"""The announcement of a move: posted once the move is stored, and only once, whatever fails."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlmodel import select, update

from gateways import gateways
from models import ServerMove, now, transaction
from services.core import queue
from services.core.actors import Actor
from services.core.errors import FieldRefused
from services.guilds import verification_channel
from services.guilds.verification_channel import EMBED, SEND, VIEW
from services.roles.moves import announcement, lifecycle, messages
from services.roles.moves.lifecycle import MoveOrder
from settings import settings
from tests.jobs.conftest import product as product
from tests.jobs.town import Town, a_town


class Interrupted(Exception):
    """The process ends, or the database rolls a transaction back."""


@pytest.fixture
async def town(product: None, sandbox_url: str) -> AsyncIterator[Town]:
    async with a_town(sandbox_url, "ada", "carol") as made:
        await made.rule("Holder")
        yield made


async def begin(town: Town, channel_id: str | None) -> bool:
    """Begin or change a move of Holder that is announced in a channel."""
    ada = town.people["ada"]
    order = MoveOrder(now() + timedelta(days=1), [await town.role("Holder")], channel_id=channel_id)
    async with transaction() as db:
        return await lifecycle.begin_or_change(
            db, gateways(), Actor(1, ada["id"], ada["username"]), town.server_id, order
        )


async def general(town: Town) -> str:
    return (await town.guild())["channels"][0]["id"]


async def posted_in(town: Town, channel_id: str) -> list[str]:
    """Return the titles of the messages in a channel, or their texts."""
    channel = next(one for one in (await town.guild())["channels"] if one["id"] == channel_id)
    embeds = [one["embeds"][0] for one in channel["messages"]]
    return [one.get("title") or one["description"] for one in embeds]


async def stored() -> ServerMove | None:
    async with transaction() as db:
        return (await db.exec(select(ServerMove))).first()


async def the_scheduler_takes_over() -> None:
    async with transaction() as db:
        await db.exec(update(ServerMove).values(messages_at=now()))
    async with transaction() as db:
        assert await messages.bring_up_to_date(db, gateways())


async def interrupted(*_arguments: object, **_options: object) -> Any:
    raise Interrupted


async def begin_in_vain(town: Town, place: str, monkeypatch: pytest.MonkeyPatch, module: object, name: str) -> None:
    """Begin a move while this function of a module fails."""
    with monkeypatch.context() as patched:
        patched.setattr(module, name, interrupted)
        with pytest.raises(Interrupted):
            await begin(town, place)


def title() -> str:
    return f"Our roles move to {settings().bot_name}"


async def test_a_move_that_is_rolled_back_is_not_announced(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    place = await general(town)
    before = await posted_in(town, place)
    await begin_in_vain(town, place, monkeypatch, queue, "mark_server")
    assert (await stored(), await posted_in(town, place)) == (None, before)
    assert await begin(town, place)
    assert await posted_in(town, place) == [*before, title()]


async def test_an_announcement_is_known_even_if_what_follows_fails(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    place = await general(town)
    before = await posted_in(town, place)
    await begin_in_vain(town, place, monkeypatch, verification_channel, "refresh_panel")
    move = await stored()
    assert move is not None
    assert move.message_id is not None
    assert move.messages_at is not None
    await the_scheduler_takes_over()
    assert await posted_in(town, place) == [*before, title()]


@pytest.mark.parametrize("can_read", [True, False], ids=["readable", "unreadable"])
async def test_an_announcement_whose_id_was_lost_is_not_posted_again(
    town: Town, monkeypatch: pytest.MonkeyPatch, can_read: bool
) -> None:
    place, post = await general(town), announcement.post
    before = await posted_in(town, place)

    async def nothing(_channel_id: str) -> list[object]:
        return []

    async def lost(*arguments: Any) -> None:
        assert await post(*arguments)
        raise Interrupted

    if not can_read:
        monkeypatch.setattr(gateways().discord, "recent_messages", nothing)
    with monkeypatch.context() as patched:
        patched.setattr(announcement, "post", lost)
        with pytest.raises(Interrupted):
            await begin(town, place)
    await the_scheduler_takes_over()
    assert await posted_in(town, place) == [*before, title()]
    move = await stored()
    assert move is not None
    assert (move.message_id is not None, move.messages_at) == (True, move.until)


async def test_an_announcement_that_discord_did_not_take_is_posted_later(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = await general(town)
    before = await posted_in(town, place)

    async def failed(*_arguments: object) -> None:
        return None

    with monkeypatch.context() as patched:
        patched.setattr(announcement, "post", failed)
        assert not await begin(town, place)
    await the_scheduler_takes_over()
    assert await posted_in(town, place) == [*before, title()]


async def test_an_announcement_that_loses_its_channel_while_it_is_posted_says_so(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, post = await general(town), announcement.post
    before = await posted_in(town, place)

    async def and_meanwhile_no_channel_is_chosen(*arguments: Any) -> str | None:
        message_id = await post(*arguments)
        assert await begin(town, None)
        return message_id

    with monkeypatch.context() as patched:
        patched.setattr(announcement, "post", and_meanwhile_no_channel_is_chosen)
        assert await begin(town, place)
    assert await posted_in(town, place) == [*before, "This is no longer announced here."]
    move = await stored()
    assert move is not None
    assert (move.channel_id, move.message_id) == (None, None)
    assert await begin(town, place)
    assert await posted_in(town, place) == [*before, title()], "the message of the same nonce is edited"


async def test_a_move_that_is_put_off_as_its_time_comes_begins_at_the_new_date(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, checked = town.people["ada"], lifecycle._checked_roles  # pyright: ignore[reportPrivateUsage]
    roles, at = [await town.role("Holder")], now()
    begun = list[asyncio.Task[int]]()

    async def scheduled() -> int:
        async with transaction() as db:
            return await lifecycle.begin_due(db)

    async def and_meanwhile_its_time_comes(*arguments: Any) -> list[str]:
        begun.append(asyncio.create_task(scheduled()))
        await asyncio.wait(begun, timeout=0.1)
        return await checked(*arguments)

    async def ordered(begins_at: datetime) -> None:
        order = MoveOrder(at + timedelta(days=9), roles, begins_at)
        async with transaction() as db:
            await lifecycle.begin_or_change(db, gateways(), Actor(1, ada["id"], ada["username"]), town.server_id, order)

    await ordered(at + timedelta(days=1))
    async with transaction() as db:
        await db.exec(update(ServerMove).values(begins_at=at))
    monkeypatch.setattr(lifecycle, "_checked_roles", and_meanwhile_its_time_comes)
    await ordered(at + timedelta(days=7))
    assert [await one for one in begun] == [0]
    move = await stored()
    assert move is not None
    assert (move.begun_at, move.begins_at) == (None, at + timedelta(days=7))


async def overwrite(town: Town, channel_id: str, of: str, kind: int, *, allow: int = 0, deny: int = 0) -> None:
    """Allow and deny permissions in a channel to a role (kind 0) or a member (1), with the bot's own token."""
    token = settings().discord_bot_token.get_secret_value()
    answer = await town.control.put(
        f"/discord/api/v10/channels/{channel_id}/permissions/{of}",
        headers={"Authorization": f"Bot {token}"},
        json={"type": kind, "allow": str(allow), "deny": str(deny)},
    )
    assert answer.status_code < 300, answer.text


@pytest.mark.parametrize("denied", [VIEW, SEND, EMBED], ids=["view", "send", "embed"])
async def test_a_channel_in_which_the_bot_may_not_write_is_refused_and_nothing_is_stored(
    town: Town, denied: int
) -> None:
    place = await general(town)
    await overwrite(town, place, (await gateways().discord.me()).id, 1, deny=denied)
    with pytest.raises(FieldRefused, match="may not write"):
        await begin(town, place)
    assert await stored() is None


async def test_a_channel_in_which_only_the_bot_may_write_is_accepted(town: Town) -> None:
    place = await general(town)
    await overwrite(town, place, (await gateways().discord.me()).id, 1, allow=VIEW | SEND | EMBED)
    await overwrite(town, place, (await town.guild())["id"], 0, deny=VIEW | SEND | EMBED)
    assert await begin(town, place)
    assert (await posted_in(town, place))[-1] == title()
