"""Signing in: the requests to Discord, and the use of its answers."""

import asyncio
import base64
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from aiohttp import web

from gateways.discord.oauth import DiscordOAuth, GrantRefused, TokenSet
from gateways.transport import size_limited_client
from gateways.transport.errors import (
    ProviderBusy,
    ProviderConfused,
    ProviderDown,
    ProviderError,
    ProviderRefused,
    Unauthorized,
)
from tests.gateways.wire import Wire

TOKEN = {
    "access_token": "6qrZcUqja7812RVdnEKjpzOL4CvHBFG",
    "token_type": "Bearer",
    "expires_in": 604800,
    "refresh_token": "D43f5y0ahjqew82jZ4NViEr2YafMKhue",
    "scope": "identify guilds",
}
BAD_CODE = web.json_response({"error": "invalid_grant", "error_description": 'Invalid "code" in request.'}, status=400)
OLD = TokenSet("a", "r", datetime.now(UTC), "identify")


@pytest.fixture
async def oauth(server: Wire) -> AsyncIterator[DiscordOAuth]:
    client = DiscordOAuth(
        client_id="157730590492196864",
        client_secret="hush:&",
        authorize_url="https://discord.com/oauth2/authorize",
        token_url=f"{server.url}/oauth2/token",
        revoke_url=f"{server.url}/oauth2/token/revoke",
        api_url=f"{server.url}/api/v10/",
        public_url="http://localhost:3000",
    )
    yield client
    await client.close()


def query(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query, strict_parsing=True).items()}


def test_the_consent_page_gets_state_scopes_and_a_pkce_challenge(oauth: DiscordOAuth) -> None:
    # The verifier and its challenge are those of RFC 7636, appendix B.
    verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    url = oauth.authorize_url("s3cret", verifier, ["identify", "guilds"], "http://localhost:3000/cb")
    assert url.startswith("https://discord.com/oauth2/authorize?")
    assert "scope=identify%20guilds" in url
    assert query(url) == {
        "response_type": "code",
        "client_id": "157730590492196864",
        "state": "s3cret",
        "scope": "identify guilds",
        "redirect_uri": "http://localhost:3000/cb",
        "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
        "code_challenge_method": "S256",
    }


def test_an_invite_names_the_guild_only_when_one_is_given(oauth: DiscordOAuth) -> None:
    url = oauth.bot_invite_url("42", 2416004112)
    assert "scope=bot%20applications.commands" in url
    assert query(url) == {
        "client_id": "157730590492196864",
        "scope": "bot applications.commands",
        "permissions": "2416004112",
        "guild_id": "42",
        "disable_guild_select": "true",
    }
    assert "guild" not in oauth.bot_invite_url(None, 8)


async def test_a_code_becomes_tokens_that_no_repr_shows(oauth: DiscordOAuth, server: Wire) -> None:
    server.says(web.json_response(TOKEN))
    tokens = await oauth.exchange("the-code", "the-verifier", "http://localhost:3000/cb")
    assert (tokens.access_token, tokens.refresh_token) == (TOKEN["access_token"], TOKEN["refresh_token"])
    assert abs(tokens.expires_at - datetime.now(UTC) - timedelta(days=7)) < timedelta(minutes=1)
    assert tokens.scope == "identify guilds"
    assert str(TOKEN["access_token"]) not in repr(tokens)
    asked = server.asked[0]
    assert asked.headers["Content-Type"].startswith("application/x-www-form-urlencoded")
    assert base64.b64decode(asked.headers["Authorization"].removeprefix("Basic ")) == b"157730590492196864:hush:&"
    assert {name: value[0] for name, value in parse_qs(asked.body).items()} == {
        "grant_type": "authorization_code",
        "code": "the-code",
        "code_verifier": "the-verifier",
        "redirect_uri": "http://localhost:3000/cb",
    }


async def test_a_bad_code_and_a_dead_grant_are_refused(oauth: DiscordOAuth, server: Wire) -> None:
    server.says(BAD_CODE)
    with pytest.raises(GrantRefused):
        await oauth.exchange("bad", "v", "http://x")
    with pytest.raises(GrantRefused):
        await oauth.refresh(OLD)


@pytest.mark.parametrize(
    "answer",
    [
        web.json_response({"error": "invalid_request"}, status=400),
        web.json_response({"error": "invalid_client"}, status=401),
        web.Response(status=400, text="<html>400 Bad Request</html>"),
        web.Response(status=403, text="<html>error code: 1020</html>"),
    ],
)
async def test_another_refusal_says_nothing_about_the_grant(
    oauth: DiscordOAuth, server: Wire, answer: web.Response
) -> None:
    server.says(answer)
    with pytest.raises(ProviderRefused) as caught:
        await oauth.refresh(OLD)
    assert not isinstance(caught.value, GrantRefused)


async def test_refreshing_keeps_the_newest_refresh_token(oauth: DiscordOAuth, server: Wire) -> None:
    server.says(web.json_response(TOKEN), web.json_response({**TOKEN, "refresh_token": None}))
    assert (await oauth.refresh(OLD)).refresh_token == TOKEN["refresh_token"]
    assert parse_qs(server.asked[0].body)["refresh_token"] == ["r"]
    assert (await oauth.refresh(OLD)).refresh_token == "r"


async def test_revoking_sends_the_token(oauth: DiscordOAuth, server: Wire) -> None:
    server.says(web.json_response({}))
    await oauth.revoke("tok")
    assert parse_qs(server.asked[0].body)["token"] == ["tok"]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (web.Response(status=429, headers={"Retry-After": "7"}), ProviderBusy),
        (web.Response(status=500), ProviderDown),
        ("close", ProviderDown),
        (web.Response(text="{"), ProviderConfused),
        (web.json_response({}), ProviderConfused),
        (web.json_response([]), ProviderConfused),
        (web.json_response({**TOKEN, "access_token": ""}), ProviderConfused),
        (web.json_response({**TOKEN, "expires_in": "soon"}), ProviderConfused),
        (web.json_response({**TOKEN, "expires_in": 0}), ProviderConfused),
        (web.json_response({**TOKEN, "expires_in": 2**63}), ProviderConfused),
        (web.json_response({"error": "invalid_client"}, status=401), Unauthorized),
    ],
)
async def test_every_other_answer_to_an_exchange_is_an_error(
    oauth: DiscordOAuth, server: Wire, answer: Any, kind: type[ProviderError]
) -> None:
    server.says(answer)
    with pytest.raises(ProviderError) as caught:
        await oauth.exchange("code", "v", "http://x")
    assert type(caught.value) is kind


async def test_who_signed_in_and_where_they_are_admin(oauth: DiscordOAuth, server: Wire) -> None:
    person = {"id": "80351110224678912", "username": "nelly", "discriminator": "0", "global_name": None, "avatar": "x"}
    common = {"name": "g", "icon": None, "features": []}
    server.says(
        web.json_response(person),
        web.json_response(
            [
                {"id": "1", "owner": True, "permissions": "0", **common},
                {"id": "2", "owner": False, "permissions": "8", **common},
                {"id": "3", "owner": False, "permissions": "4503599627370528", **common},
            ]
        ),
    )
    assert (await oauth.me("tok")).username == "nelly"
    assert server.asked[0].headers["Authorization"] == "Bearer tok"
    assert [guild.is_admin for guild in await oauth.my_guilds("tok")] == [True, True, False]


def listing(guild_id: str, **headers: str) -> web.Response:
    guild = {"id": guild_id, "name": "g", "icon": None, "owner": True, "permissions": "0"}
    return web.json_response([guild], headers=headers)


def spent(seconds: str) -> dict[str, str]:
    """Return the headers of the last answer in a window that ends after so many seconds."""
    return {"X-RateLimit-Limit": "1", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": seconds}


async def listed(oauth: DiscordOAuth, token: str = "tok") -> list[str]:
    return [guild.id for guild in await oauth.my_guilds(token)]


async def test_a_persons_list_of_guilds_is_asked_for_once_in_a_window(oauth: DiscordOAuth, server: Wire) -> None:
    server.says(listing("1", **spent("9")), listing("2"))
    assert await asyncio.gather(*(listed(oauth) for _ in range(3))) == [["1"]] * 3
    assert await listed(oauth) == ["1"]
    assert len(server.asked) == 1
    assert await listed(oauth, "another") == ["2"], "each token has a window of its own"


async def test_the_window_is_the_one_that_discord_says(oauth: DiscordOAuth, server: Wire) -> None:
    server.says(listing("1", **spent("0")), listing("2", **spent("9")), listing("3"))
    assert [await listed(oauth) for _ in range(3)] == [["1"], ["2"], ["2"]]
    assert len(server.asked) == 2


async def test_the_next_list_waits_for_discords_limit(oauth: DiscordOAuth, server: Wire) -> None:
    limited = {"Retry-After": "0.05"}
    server.says(web.Response(status=502), web.Response(status=429, headers=limited), web.json_response([]))
    with pytest.raises(ProviderDown):
        await oauth.my_guilds("tok")
    assert await oauth.my_guilds("tok") == []
    assert len(server.asked) == 3


async def test_a_list_of_now_is_asked_for_when_the_window_is_over(oauth: DiscordOAuth, server: Wire) -> None:
    server.says(listing("1", **spent("0.2")), listing("2"))
    assert await listed(oauth) == ["1"]
    assert [guild.id for guild in await oauth.my_guilds("tok", max_age=0)] == ["2"]


async def test_a_limit_that_nobody_can_wait_for_is_answered_with_the_last_list(
    oauth: DiscordOAuth, server: Wire
) -> None:
    limited = {"Retry-After": "30"}
    server.says(listing("1", **spent("0")), *(web.Response(status=429, headers=limited) for _ in range(2)))
    assert await listed(oauth) == ["1"]
    assert [guild.id for guild in await oauth.my_guilds("tok", max_age=60)] == ["1"]
    with pytest.raises(ProviderBusy):
        await oauth.my_guilds("tok", max_age=0)


@pytest.mark.parametrize("answer", ["close", web.Response(status=502)])
async def test_while_discord_does_not_answer_a_young_list_is_good_enough(
    oauth: DiscordOAuth, server: Wire, answer: Any
) -> None:
    server.says(listing("1", **spent("0")), answer, "close")
    assert await listed(oauth) == ["1"]
    assert [guild.id for guild in await oauth.my_guilds("tok", max_age=60)] == ["1"]
    with pytest.raises(ProviderDown):
        await oauth.my_guilds("tok", max_age=0)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (web.json_response({"message": "401: Unauthorized", "code": 0}, status=401), Unauthorized),
        (web.Response(status=429, headers={"Retry-After": "7"}), ProviderBusy),
        (web.Response(status=502), ProviderDown),
        ("close", ProviderDown),
        (web.json_response({}), ProviderConfused),
        (web.json_response([{}]), ProviderConfused),
        (web.Response(status=302, headers={"Location": "/"}), ProviderConfused),
    ],
)
async def test_every_other_answer_to_a_persons_read_is_an_error(
    oauth: DiscordOAuth, server: Wire, answer: Any, kind: type[ProviderError]
) -> None:
    server.says(answer)
    with pytest.raises(ProviderError) as caught:
        await oauth.my_guilds("tok")
    assert type(caught.value) is kind
    assert "tok" not in str(caught.value).replace("token", "")


async def test_a_token_in_an_answer_that_is_too_large_is_not_read(
    oauth: DiscordOAuth, server: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(size_limited_client, "LARGEST_ANSWER", 1_000)
    server.says(web.json_response(TOKEN | {"more": "x" * 1_000}))
    with pytest.raises(ProviderConfused, match="HTTP 200 without a token"):
        await oauth.exchange("the-code", "the-verifier", "http://localhost:3000/cb")
    server.says(web.json_response(["x" * 1_000]))
    with pytest.raises(ProviderConfused, match="HTTP 200 without usable JSON"):
        await oauth.me("a token")
