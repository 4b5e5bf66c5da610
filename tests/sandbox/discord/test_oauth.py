"""OAuth2 of the sandbox's Discord."""

import base64
import hashlib

import httpx
import pytest

from sandbox.discord.oauth import oauth
from tests.sandbox.conftest import BASE, CALLBACK, CLUB, QUIET, Outside


async def test_a_code_is_good_once_for_its_redirect_uri(discord: Outside):
    redirect = await discord.authorize("carol", state="abc")
    location = httpx.URL(redirect.headers["location"])
    assert location.params["state"] == "abc"
    form = {"grant_type": "authorization_code", "code": location.params["code"]}
    first = await discord.token(**form, redirect_uri=CALLBACK)
    again = await discord.token(**form, redirect_uri=CALLBACK)
    assert first.json()["expires_in"] == 604800
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")


async def test_the_codes_of_abandoned_sign_ins_are_forgotten(discord: Outside, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(oauth, "CODE_SECONDS", -1)
    for _ in range(3):
        await discord.authorize("carol")
    assert discord.sandbox.discord.oauth.waiting == 1, "the newest one alone"


async def test_a_bearer_sees_its_user_and_guilds_with_permissions(discord: Outside):
    bearer = f"Bearer {(await discord.signed_in('bob'))['access_token']}"
    me = (await discord.rest("GET", "/users/@me", bearer)).json()
    assert me["username"] == "bob"
    assert "email" not in me
    guilds = (await discord.rest("GET", "/users/@me/guilds", bearer, params={"with_counts": "true"})).json()
    assert [(guild["id"], bool(int(guild["permissions"]) & 8)) for guild in guilds] == [
        (CLUB, True),
        (BASE, True),
        (QUIET, False),
    ]
    assert (await discord.rest("GET", f"/users/@me/guilds/{CLUB}/member", bearer)).json()["code"] == 50026
    assert (await discord.rest("GET", f"/guilds/{BASE}", bearer)).status_code == 401


async def test_pkce_is_verified(discord: Outside):
    verifier = "v" * 64
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    for given, status in ((verifier, 200), ("w" * 64, 400)):
        redirect = await discord.authorize("ada", code_challenge=challenge, code_challenge_method="S256")
        code = httpx.URL(redirect.headers["location"]).params["code"]
        answer = await discord.token(
            grant_type="authorization_code", code=code, redirect_uri=CALLBACK, code_verifier=given
        )
        assert answer.status_code == status


async def test_refreshing_rotates_and_revoking_ends_everything_of_the_user(discord: Outside):
    first, second = await discord.signed_in("dave"), await discord.signed_in("dave")
    fresh = (await discord.token(grant_type="refresh_token", refresh_token=first["refresh_token"])).json()
    stale = await discord.token(grant_type="refresh_token", refresh_token=first["refresh_token"])
    assert stale.json()["error"] == "invalid_grant"
    assert (await discord.token("/oauth2/token/revoke", token=fresh["refresh_token"])).status_code == 200
    for token in (fresh["access_token"], second["access_token"]):
        assert (await discord.rest("GET", "/users/@me", f"Bearer {token}")).status_code == 401


async def test_token_calls_take_forms_and_the_right_client_only(discord: Outside):
    as_json = await discord.http.post("/discord/api/v10/oauth2/token", json={"grant_type": "refresh_token"})
    assert as_json.json()["error"] == "invalid_request"
    wrong = await discord.token(grant_type="refresh_token", refresh_token="x", client_secret="wrong")
    assert (wrong.status_code, wrong.json()["error"]) == (401, "invalid_client")
    basic = (discord.settings["DISCORD_CLIENT_ID"], discord.settings["DISCORD_CLIENT_SECRET"])
    answer = await discord.http.post(
        "/discord/api/v10/oauth2/token", data={"grant_type": "refresh_token", "refresh_token": "x"}, auth=basic
    )
    assert answer.json()["error"] == "invalid_grant"


async def test_a_denial_and_a_foreign_redirect_uri_are_told_as_discord_does(discord: Outside):
    denied = await discord.authorize("", deny="1", state="s")
    assert httpx.URL(denied.headers["location"]).params["error"] == "access_denied"
    for foreign in ("https://evil.example/api/auth/discord/callback", "http://localhost:3000/elsewhere"):
        answer = await discord.authorize("ada", redirect_uri=foreign)
        assert answer.status_code == 400
        assert "Invalid OAuth2 redirect_uri" in answer.text


async def test_the_consent_page_names_everybody(discord: Outside):
    query = {"client_id": discord.settings["DISCORD_CLIENT_ID"], "scope": "identify", "response_type": "code"}
    page = await discord.http.get("/discord/oauth2/authorize", params={**query, "redirect_uri": CALLBACK})
    for username in ("ada", "bob", "carol", "dave", "erin", "mallory"):
        assert f"Authorize as {username}" in page.text


async def invite(discord: Outside, username: str, guild: str, **more: str) -> httpx.Response:
    query = {"client_id": discord.settings["DISCORD_CLIENT_ID"], "scope": "bot applications.commands"}
    more = {"permissions": "2416004112", "guild_id": guild, "as": username, **more}
    return await discord.http.get("/discord/oauth2/authorize", params={**query, **more})


@pytest.mark.parametrize(
    ("username", "guild", "status"), [("mallory", CLUB, 403), ("bob", QUIET, 403), ("bob", CLUB, 200)]
)
async def test_only_who_may_manage_a_server_adds_the_bot(discord: Outside, username: str, guild: str, status: int):
    assert (await invite(discord, username, guild)).status_code == status
    assert (await discord.guild(guild))["bot_added"] is (status == 200)


async def test_the_bots_role_lands_between_admin_and_founder(discord: Outside):
    await invite(discord, "ada", CLUB)
    names = [role["name"] for role in (await discord.guild(CLUB))["roles"]]
    assert names[-3:] == ["Admin", "HoldfastBot", "Founder"]


async def test_an_extended_invite_redirects_with_the_guild(discord: Outside):
    more = {"scope": "identify bot", "response_type": "code", "redirect_uri": CALLBACK}
    location = httpx.URL((await invite(discord, "ada", CLUB, **more)).headers["location"])
    assert location.params["guild_id"] == CLUB
    form = {"code": location.params["code"], "redirect_uri": CALLBACK}
    answer = (await discord.token(grant_type="authorization_code", **form)).json()
    assert answer["guild"]["id"] == CLUB
    assert isinstance(answer["guild"]["roles"][0]["permissions"], int)


async def test_without_permissions_the_bot_gets_no_role_of_its_own(discord: Outside):
    await invite(discord, "ada", CLUB, permissions="0")
    guild = await discord.guild(CLUB)
    assert guild["bot_added"]
    assert "HoldfastBot" not in [role["name"] for role in guild["roles"]]
    assert (await discord.bot("GET", f"/guilds/{CLUB}/roles")).status_code == 200
    await discord.control("guilds", guild=CLUB, action="kick_bot")


async def test_an_application_gets_a_token_for_its_owner(discord: Outside):
    basic = (discord.settings["DISCORD_CLIENT_ID"], discord.settings["DISCORD_CLIENT_SECRET"])
    form = {"grant_type": "client_credentials", "scope": "identify guilds"}
    answer = await discord.http.post("/discord/api/v10/oauth2/token", data=form, auth=basic)
    told = answer.json()
    assert (set(told), told["scope"]) == ({"access_token", "token_type", "expires_in", "scope"}, "identify guilds")
    me = await discord.rest("GET", "/users/@me", f"Bearer {told['access_token']}")
    assert me.json()["username"] == "ada"
    wrong = await discord.token(grant_type="client_credentials", scope="bot")
    assert (wrong.status_code, wrong.json()["error"]) == (400, "invalid_scope")


async def test_registered_redirects_are_compared_letter_for_letter(discord: Outside):
    await discord.control("application", redirect_uris=[CALLBACK])
    assert (await discord.authorize("ada")).status_code == 302
    others = ("http://127.0.0.1:3000", "http://localhost:9999", "https://localhost:3000", "http://LOCALHOST:3000")
    for other in others:
        answer = await discord.authorize("ada", redirect_uri=CALLBACK.replace("http://localhost:3000", other))
        assert answer.status_code == 400, other
        assert "Invalid OAuth2 redirect_uri" in answer.text
    told = (await discord.bot("GET", "/applications/@me")).json()
    assert told["redirect_uris"] == [CALLBACK]


@pytest.mark.parametrize(("strict", "statuses"), [(True, [302, 400]), (False, [302, 302])])
async def test_a_strict_sandbox_has_the_products_redirect_registered(
    discord: Outside, strict: bool, statuses: list[int]
):
    discord.sandbox.strict = strict
    await discord.control("reset")
    answers = [await discord.authorize("ada", redirect_uri=each) for each in (CALLBACK, CALLBACK.replace("3000", "1"))]
    assert [answer.status_code for answer in answers] == statuses
