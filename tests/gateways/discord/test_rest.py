"""The bot's REST client against every kind of answer that Discord documents."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateways.discord.invalid_requests import ALLOWED, GUILD_ALLOWED, GuildRests, TooManyRefusals
from gateways.discord.rest import Discord, audit_reason
from gateways.discord.types import GuildGone, MemberGone, MissingAccess, MissingPermissions, RoleGone, TokenRejected
from gateways.transport.errors import (
    LONGEST_PAUSE,
    NotYet,
    ProviderBusy,
    ProviderConfused,
    ProviderDown,
    ProviderError,
    ProviderRefused,
)
from tests.gateways.wire import Wire

GUILD = "197038439483310086"
USER = "80351110224678912"
ROLE = "300000000000000001"
LIMITS = {
    "X-RateLimit-Limit": "10",
    "X-RateLimit-Remaining": "9",
    "X-RateLimit-Reset-After": "10.0",
    "X-RateLimit-Bucket": "abcd1234",
}


def role(id: str, name: str, **more: Any) -> dict[str, Any]:
    basis = {"id": id, "name": name, "position": 0, "permissions": "0", "color": 0, "managed": False}
    return basis | more


def user(id: str = USER) -> dict[str, Any]:
    return {"id": id, "username": "nelly", "discriminator": "0", "global_name": "Nelly", "avatar": None}


def says(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.json_response(body, status=status, headers={**LIMITS, **(headers or {})})


def done() -> web.Response:
    return web.Response(status=204, headers=LIMITS)


def too_many(seconds: float, scope: str | None = "user", **headers: str) -> web.Response:
    body = {"message": "You are being rate limited.", "retry_after": seconds, "global": scope == "global"}
    sent = {"Retry-After": str(int(seconds) + 1), "Via": "1.1 google"} | headers
    if scope:
        sent["X-RateLimit-Scope"] = scope
    return web.json_response(body, status=429, headers=sent)


def refuses(status: int, code: int, message: str = "No") -> web.Response:
    return says({"code": code, "message": message}, status)


@pytest.fixture
async def discord(server: Wire) -> AsyncIterator[Discord]:
    client = Discord(f"{server.url}/api/v10", "secret", "http://localhost:3000", deadline=3.0)
    yield client
    await client.close()


async def test_a_guild_comes_with_its_roles_and_their_tags(discord: Discord, server: Wire) -> None:
    roles = [
        role(GUILD, "@everyone", permissions="104324673"),
        role("3", "Server Booster", position=3, managed=True, tags={"premium_subscriber": None}),
        role("4", "Bot", position=4, managed=True, tags={"bot_id": "157730590492196864"}),
        role("5", "Linked", tags={"guild_connections": None}, color=255, permissions="4503599627370496"),
        role("6", "Sold", managed=True, tags={"integration_id": "7", "subscription_listing_id": "8"}),
        role("7", "Twitch", managed=True, tags={"integration_id": "7"}),
        role("8", "Holder"),
    ]
    server.says(says({"id": GUILD, "name": "Club", "icon": None, "owner_id": USER, "roles": roles}))
    guild = await discord.guild(GUILD)
    assert (guild.name, guild.owner_id, len(guild.roles)) == ("Club", USER, 7)
    givers = [role.giver for role in guild.roles]
    assert givers == ["", "booster", "bot", "linked", "shop", "integration", ""]
    assert guild.roles[1].premium_subscriber
    assert guild.roles[1].managed
    assert guild.roles[2].bot_id == "157730590492196864"
    assert guild.roles[3].guild_connections
    assert guild.roles[3].permissions == 1 << 52
    asked = server.asked[0]
    assert asked.path == f"/api/v10/guilds/{GUILD}"
    assert asked.headers["Authorization"] == "Bot secret"
    assert asked.headers["User-Agent"].startswith("DiscordBot (http://localhost:3000, ")


async def test_a_member_is_called_by_nick_then_global_name_then_username(discord: Discord, server: Wire) -> None:
    server.says(
        says({"user": user(), "nick": None, "avatar": "x", "roles": [ROLE], "pending": True}),
        says({"user": user() | {"global_name": None}, "nick": None, "avatar": None, "roles": [], "pending": False}),
        says({"user": user(), "nick": "Nick", "avatar": None, "roles": [], "pending": False}),
    )
    first = await discord.member(GUILD, USER)
    assert (first.display_name, first.roles, first.pending, first.avatar) == ("Nelly", frozenset({ROLE}), True, None)
    assert (await discord.member(GUILD, USER)).display_name == "nelly"
    assert (await discord.member(GUILD, USER)).display_name == "Nick"


async def test_a_role_write_is_a_single_role_call_with_its_reason(discord: Discord, server: Wire) -> None:
    server.says(done())
    await discord.add_role(GUILD, USER, ROLE, "Hält 2 von „Cool“\nseit heute")
    await discord.remove_role(GUILD, USER, ROLE, "sold")
    put, delete = server.asked
    assert (put.method, delete.method) == ("PUT", "DELETE")
    assert put.path == delete.path == f"/api/v10/guilds/{GUILD}/members/{USER}/roles/{ROLE}"
    assert put.headers["X-Audit-Log-Reason"] == "H%C3%A4lt 2 von %E2%80%9ECool%E2%80%9C%0Aseit heute"
    assert put.body == ""


async def test_no_message_of_ours_calls_anybody_whatever_it_says(discord: Discord, server: Wire) -> None:
    message = {"id": "8", "channel_id": "7", "author": user(), "content": "", "embeds": [], "components": []}
    server.says(says(message))
    body = {"content": f"@everyone <@{USER}> <@&{ROLE}>", "allowed_mentions": {"parse": ["everyone"]}}
    await discord.post_message("7", body, "once")
    await discord.edit_message("7", "8", body)
    assert [json.loads(one.body)["allowed_mentions"] for one in server.asked] == [{"parse": []}] * 2


def test_a_reason_never_exceeds_512_characters_nor_breaks_inside_one() -> None:
    assert len(audit_reason("x" * 600)) == 512
    long = audit_reason("ä" * 600)
    assert len(long) <= 512
    assert long.count("%C3%A4") * 6 == len(long)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (404, 10004, GuildGone),
        (404, 10007, MemberGone),
        (404, 10011, RoleGone),
        (404, 10013, MemberGone),
        (403, 50001, MissingAccess),
        (403, 50013, MissingPermissions),
        (400, 50028, MissingPermissions),
        (401, 0, TokenRejected),
        (400, 50035, ProviderRefused),
        (403, 40333, ProviderDown),
    ],
)
async def test_each_refusal_has_its_own_error_and_is_asked_once(
    discord: Discord, server: Wire, status: int, code: int, kind: type[ProviderError]
) -> None:
    server.says(refuses(status, code))
    with pytest.raises(ProviderError) as caught:
        await discord.add_role(GUILD, USER, ROLE, "x")
    assert type(caught.value) is kind
    assert len(server.asked) == 1


async def test_a_404_that_is_not_discords_own_proves_nothing(discord: Discord, server: Wire) -> None:
    server.says(web.Response(status=404, text="<html>not here</html>", content_type="text/html"))
    with pytest.raises(ProviderConfused):
        await discord.member(GUILD, USER)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        [],
        {"user": {"id": "1", "username": "other"}, "roles": [], "pending": False},
        {"user": {"id": USER, "username": "nelly"}, "roles": None},
        {"user": {"id": USER, "username": "nelly"}, "roles": [3], "pending": False},
    ],
)
async def test_a_member_of_the_wrong_shape_is_confusion(discord: Discord, server: Wire, answer: Any) -> None:
    server.says(says(answer))
    with pytest.raises(ProviderConfused):
        await discord.member(GUILD, USER)


async def test_broken_json_and_an_empty_list_of_roles_are_confusion(discord: Discord, server: Wire) -> None:
    server.says(web.Response(text='{"id": ', content_type="application/json"), says([]))
    for _ in range(2):
        with pytest.raises(ProviderConfused):
            await discord.roles(GUILD)


async def test_a_write_answered_with_an_empty_200_did_not_happen(discord: Discord, server: Wire) -> None:
    server.says(says({}))
    with pytest.raises(ProviderConfused):
        await discord.add_role(GUILD, USER, ROLE, "x")


@pytest.mark.parametrize("status", [500, 502, 503, 504])
async def test_an_outage_is_asked_again_until_it_heals(discord: Discord, server: Wire, status: int) -> None:
    server.says(web.Response(status=status), "close", done())
    await discord.add_role(GUILD, USER, ROLE, "x")
    assert len(server.asked) == 3


async def test_a_lasting_outage_ends_within_the_deadline_as_down(server: Wire) -> None:
    discord = Discord(server.url, "t", "http://x", deadline=1.2)
    server.says(web.Response(status=503))
    with pytest.raises(ProviderDown):
        await discord.add_role(GUILD, USER, ROLE, "x")
    server.says("hang")
    with pytest.raises(ProviderDown):
        await discord.me()
    await discord.close()


async def test_nobody_listening_is_down() -> None:
    discord = Discord("http://127.0.0.1:9", "t", "http://x", deadline=0.4)
    with pytest.raises(ProviderDown):
        await discord.me()
    await discord.close()


@pytest.mark.parametrize(
    "answer",
    [
        too_many(0.2, "user", **LIMITS),
        too_many(0.2, "shared", **LIMITS),
        too_many(0.2, "global"),
        too_many(0.2, None),
        web.Response(status=429, headers={"Retry-After": "0.2"}, text="error code: 1015"),
    ],
    ids=["user", "shared", "global", "without headers", "not discord's own"],
)
async def test_a_429_waits_as_told_and_then_succeeds(discord: Discord, server: Wire, answer: web.Response) -> None:
    loop = asyncio.get_running_loop()
    server.says(answer, done())
    began = loop.time()
    await discord.add_role(GUILD, USER, ROLE, "x")
    assert loop.time() - began >= 0.2
    assert len(server.asked) == 2


async def test_a_429_longer_than_the_deadline_says_when_to_come_back(discord: Discord, server: Wire) -> None:
    used_up = LIMITS | {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": "64.57"}
    server.says(too_many(64.57, "user", **used_up))
    with pytest.raises(ProviderBusy) as caught:
        await discord.add_role(GUILD, USER, ROLE, "x")
    assert caught.value.retry_after == pytest.approx(64.57)
    with pytest.raises(ProviderBusy) as again:
        await discord.add_role(GUILD, "2", ROLE, "x")
    assert again.value.retry_after is not None
    assert again.value.retry_after > 60
    assert len(server.asked) == 1, "what is known to be refused is not sent"


async def test_a_429_of_years_is_one_of_an_hour(discord: Discord, server: Wire) -> None:
    server.says(too_many(1784000000.0))
    with pytest.raises(ProviderBusy) as caught:
        await discord.add_role(GUILD, USER, ROLE, "x")
    assert caught.value.retry_after == LONGEST_PAUSE


async def test_a_bucket_that_is_used_up_does_not_hold_another_guild(discord: Discord, server: Wire) -> None:
    server.says(
        web.Response(status=204, headers=LIMITS | {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": "60"}),
        done(),
    )
    await discord.add_role(GUILD, USER, ROLE, "x")
    await discord.add_role("42", USER, ROLE, "x")
    with pytest.raises(NotYet) as caught:
        await discord.add_role(GUILD, "2", ROLE, "x")
    assert caught.value.retry_after == pytest.approx(60, abs=5)
    assert len(server.asked) == 2


async def test_what_was_sent_once_is_never_said_to_be_unsent(discord: Discord, server: Wire) -> None:
    used_up = LIMITS | {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": "60"}
    server.says(web.Response(status=502, headers=used_up))
    with pytest.raises(ProviderDown) as caught:
        await discord.add_role(GUILD, USER, ROLE, "x")
    assert caught.value.retry_after == pytest.approx(60, abs=5)
    assert len(server.asked) == 1


async def test_a_global_429_holds_every_route(discord: Discord, server: Wire) -> None:
    server.says(too_many(30, "global"))
    with pytest.raises(ProviderBusy):
        await discord.add_role(GUILD, USER, ROLE, "x")
    with pytest.raises(ProviderBusy):
        await discord.me()
    assert len(server.asked) == 1


async def test_unknown_routes_go_one_at_a_time_and_then_as_many_as_remain() -> None:
    now, most, first = 0, 0, True
    waiting = asyncio.Event()

    async def slow(request: web.Request) -> web.Response:
        nonlocal now, most, first
        now += 1
        if first:
            first = False
            assert now == 1
            await asyncio.sleep(0.1)
            assert now == 1, "before the first answer nothing else is sent"
        else:
            most = max(most, now)
            if now == 4:
                waiting.set()
            async with asyncio.timeout(3):
                await waiting.wait()
        now -= 1
        return web.Response(status=204, headers=LIMITS | {"X-RateLimit-Limit": "5", "X-RateLimit-Remaining": "4"})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", slow)
    async with TestServer(app) as local:
        discord = Discord(str(local.make_url("")), "t", "http://x", deadline=5)
        await asyncio.gather(*(discord.add_role(GUILD, str(n), ROLE, "x") for n in range(1, 6)))
        await discord.close()
    assert most == 4


async def test_after_too_many_refusals_we_stop_by_ourselves(server: Wire) -> None:
    discord = Discord(server.url, "t", "http://x")
    for _ in range(ALLOWED - 1):
        discord.refusals.add()
    server.says(refuses(403, 50013))
    with pytest.raises(MissingPermissions):
        await discord.add_role(GUILD, USER, ROLE, "x")
    with pytest.raises(TooManyRefusals) as caught:
        await discord.add_role(GUILD, USER, ROLE, "x")
    assert caught.value.retry_after is not None
    assert len(server.asked) == 1
    await discord.close()


async def test_what_waited_its_turn_is_not_sent_after_too_many_refusals(server: Wire) -> None:
    discord = Discord(server.url, "t", "http://x")
    for _ in range(ALLOWED - 1):
        discord.refusals.add()
    server.says(refuses(403, 50013))
    # Before the first answer, no other request of the bucket is sent.
    writes = [discord.add_role(GUILD, USER, str(300 + number), "x") for number in range(3)]
    faults = await asyncio.gather(*writes, return_exceptions=True)
    assert [type(fault) for fault in faults] == [MissingPermissions, TooManyRefusals, TooManyRefusals]
    assert len(server.asked) == 1
    await discord.close()


async def test_a_guild_that_refused_too_much_rests_alone_and_its_admins_read_on(discord: Discord, server: Wire) -> None:
    server.says(web.json_response({"code": 60003, "message": "Two factor is required"}, status=403))
    for _ in range(GUILD_ALLOWED):
        with pytest.raises(ProviderRefused):
            await discord.add_role(GUILD, USER, ROLE, "x")
    with pytest.raises(GuildRests) as caught:
        await discord.add_role(GUILD, USER, ROLE, "x")
    assert caught.value.retry_after is not None
    assert len(server.asked) == GUILD_ALLOWED
    server.says(done())
    await discord.add_role("7", USER, ROLE, "x")
    server.says(says({"user": user(), "roles": [], "nick": None}))
    await discord.member(GUILD, USER)
    discord.refusals.reads_rest = True
    with pytest.raises(GuildRests):
        await discord.member(GUILD, USER)


async def test_global_limits_count_as_no_refusals(discord: Discord, server: Wire) -> None:
    server.says(too_many(0.05, "global"), done())
    await discord.add_role(GUILD, USER, ROLE, "x")
    assert discord.refusals.untold == 0
    server.says(too_many(0.05), done())
    await discord.add_role(GUILD, USER, ROLE, "x")
    assert discord.refusals.untold_guilds == {GUILD: 1}


def from_the_guard() -> web.Response:
    return web.Response(status=429, text="<html>error code: 1015</html>", headers={"Retry-After": "60"})


async def test_a_429_of_the_guard_stops_its_guild_and_in_two_guilds_everything(discord: Discord, server: Wire) -> None:
    server.says(from_the_guard())
    with pytest.raises(ProviderBusy):
        await discord.add_role(GUILD, USER, ROLE, "x")
    server.says(done())
    await discord.add_role("7", USER, ROLE, "x")
    for guild in ("8", "9"):
        server.says(from_the_guard())
        with pytest.raises(ProviderBusy):
            await discord.add_role(guild, USER, ROLE, "x")
    server.says(done())
    with pytest.raises(ProviderBusy):
        await discord.add_role("7", USER, ROLE, "x")
    assert len(server.asked) == 4


async def test_what_comes_through_meanwhile_shows_that_the_guard_does_not_refuse_everything(
    discord: Discord, server: Wire
) -> None:
    for guild, write in (("8", discord.add_role), ("8", discord.remove_role), ("9", discord.add_role)):
        server.says(from_the_guard())
        with pytest.raises(ProviderBusy):
            await write(guild, USER, ROLE, "x")
        server.says(done())
        await discord.add_role("7", USER, ROLE, "x")
    assert len(server.asked) == 6


async def test_a_shared_limit_without_its_header_counts_as_no_refusal(discord: Discord, server: Wire) -> None:
    body = {"message": "The resource is being rate limited.", "retry_after": 0.05, "global": False, "code": 40062}
    server.says(web.json_response(body, status=429), done())
    await discord.add_role(GUILD, USER, ROLE, "x")
    assert discord.refusals.untold == 0


async def test_the_bots_guilds_are_read_page_by_page(discord: Discord, server: Wire) -> None:
    def page(first: int, last: int) -> web.Response:
        return says(
            [{"id": str(n), "name": f"g{n}", "icon": None, "approximate_member_count": n} for n in range(first, last)]
        )

    server.says(page(1, 201), page(201, 210))
    guilds = await discord.bot_guilds()
    assert [guild.id for guild in guilds] == [str(n) for n in range(1, 210)]
    assert [guild.members for guild in guilds[-2:]] == [208, 209]
    assert server.asked[1].path.endswith("?limit=200&with_counts=true&after=200")


async def test_an_id_that_is_no_snowflake_is_never_sent(discord: Discord, server: Wire) -> None:
    with pytest.raises(ValueError):
        await discord.member(GUILD, "../../users/@me")
    assert not server.asked
