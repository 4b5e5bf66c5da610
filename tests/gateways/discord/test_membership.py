"""Membership: a person counts as absent only after two different requests, with or without the Members intent."""

import time
from typing import Any

import pytest
from aiohttp import web

from gateways.discord.rest import Discord
from gateways.discord.types import MissingAccess
from gateways.transport.errors import ProviderConfused
from tests.gateways.discord.test_rest import GUILD, ROLE, USER, refuses, says, user
from tests.gateways.discord.test_rest import discord as discord
from tests.gateways.wire import Wire

NOT_LISTED = ({"code": 10007, "message": "Unknown Member"}, 404)
NO_LISTS = ({"code": 50001, "message": "Missing Access"}, 403)


def application(flags: int) -> dict[str, Any]:
    return {"id": "1", "name": "Bot", "flags": flags, "bot_public": True, "bot_require_code_grant": False}


async def test_who_is_missing_is_looked_up_on_the_list_of_members(discord: Discord, server: Wire) -> None:
    server.says(says(*NOT_LISTED), says([{"user": user(), "roles": [ROLE]}]))
    found = await discord.membership(GUILD, USER)
    assert found is not None
    server.says(says(*NOT_LISTED), says([{"user": user("9"), "roles": []}]))
    assert await discord.membership(GUILD, USER) is None
    assert server.asked[1].path.endswith(f"/members?limit=1&after={int(USER) - 1}")


async def test_without_the_intent_who_is_missing_is_searched_by_name(discord: Discord, server: Wire) -> None:
    server.says(says(*NOT_LISTED), says(*NO_LISTS), says(application(0)), says(user()), says([]))
    assert await discord.membership(GUILD, USER) is None
    # The list is not requested again at once.
    others = [{"user": user("9"), "roles": []}, {"user": user(), "roles": [ROLE], "joined_at": None}]
    server.says(says(*NOT_LISTED), says(user()), says(others))
    found = await discord.membership(GUILD, USER)
    assert found is not None
    assert found.roles == {ROLE}
    asked = [one.path.removeprefix("/api/v10") for one in server.asked]
    search = f"/guilds/{GUILD}/members/search?query=nelly&limit=1000"
    member = f"/guilds/{GUILD}/members/{USER}"
    assert asked == [
        member, f"/guilds/{GUILD}/members?limit=1&after={int(USER) - 1}", "/applications/@me", f"/users/{USER}", search,
        member, f"/users/{USER}", search,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "before",
    [[], [says(*NOT_LISTED)], [says(*NOT_LISTED), says(*NO_LISTS), says(application(0)), says(user())]],
    ids=["the member", "the list", "a search"],
)
async def test_what_happens_while_the_answer_is_on_its_way_is_newer_than_the_answer(
    discord: Discord, server: Wire, before: list[web.Response]
) -> None:
    """An event about the member can be stored before the answer arrives, and must not be replaced by it."""
    answered = list[float]()
    member = {"user": user(), "roles": [ROLE]}

    def answer() -> web.Response:
        answered.append(time.monotonic())
        return says([member] if before else member)

    server.says(*before, answer)
    found = await discord.membership(GUILD, USER)
    assert found is not None
    assert found.asked_at < answered[-1]


async def test_a_deleted_account_is_no_member_any_more(discord: Discord, server: Wire) -> None:
    server.says(says(*NOT_LISTED), says(*NO_LISTS), says(application(0)), refuses(404, 10013))
    assert await discord.membership(GUILD, USER) is None


async def test_a_refused_list_says_nothing_while_the_intent_is_on(discord: Discord, server: Wire) -> None:
    server.says(says(*NOT_LISTED), says(*NO_LISTS), says(application(1 << 14)))
    with pytest.raises(MissingAccess):
        await discord.membership(GUILD, USER)


async def test_a_search_with_too_many_of_that_name_says_nothing(discord: Discord, server: Wire) -> None:
    many = [{"user": user(str(number)), "roles": []} for number in range(1_000)]
    server.says(says(*NOT_LISTED), says(*NO_LISTS), says(application(0)), says(user()), says(many))
    with pytest.raises(ProviderConfused, match="more members of that name"):
        await discord.membership(GUILD, USER)
