"""Signing in, staying signed in, and signing out, against the sandbox's Discord."""

from collections.abc import Callable
from urllib.parse import parse_qs, quote, urlsplit

import httpx
import pytest

from app.api import api
from app.http.languages import Languages
from gateways import close_gateways
from models import Server, transaction
from services.triggers import member_rereads
from settings import settings
from tests.app.api.browsers import PUBLIC_URL, Browser

pytestmark = pytest.mark.usefixtures("discord")
FAILED = "/oauth-error?error=auth_failed"


async def test_a_person_signs_in_and_is_known_by_cookie_and_by_header(
    browser: Browser, new_browser: Callable[[], Browser]
):
    session_id = await browser.sign_in("ada")
    assert browser.session_id == session_id
    by_cookie = await browser.client.get("/api/auth/user")
    assert by_cookie.status_code == 200
    user = by_cookie.json()
    assert user["username"] == "ada"
    assert user["discordUsername"] == "ada"
    assert user["isDiscordConnected"] is True
    assert user["isVerified"] is False
    assert user["verifiedWallets"] == []
    assert user["email"] is None
    by_header = await new_browser().client.get("/api/auth/user", headers={"x-session-id": session_id})
    assert by_header.json() == user
    assert by_header.headers["cache-control"] == "no-store"


async def test_the_bot_looks_for_somebody_whose_servers_discord_does_not_list(browser: Browser, sandbox_url: str):
    async with transaction() as db:
        db.add(Server(discord_id="1170000000000002000", name="Base Builders", bot_invited=True))
        db.add(Server(discord_id="1170000000000002999", name="Without the bot", bot_invited=False))
    fault = {"target": "discord", "kind": "answer", "path": "/users/@me/guilds", "status": 500, "body": {}}
    async with httpx.AsyncClient(base_url=sandbox_url) as control:
        (await control.post("/control/faults", json=fault)).raise_for_status()
        try:
            await browser.sign_in("carol")
        finally:
            (await control.delete("/control/faults")).raise_for_status()
    carol = (await browser.client.get("/api/auth/user")).json()["discordId"]
    async with transaction() as db:
        read = await member_rereads.never_read(db, 10)
    assert [(one.guild_id, one.discord_id) for one in read] == [("1170000000000002000", carol)]


async def test_nobody_is_signed_in_without_a_session(browser: Browser):
    answer = await browser.client.get("/api/auth/user")
    assert (answer.status_code, answer.json()) == (401, {"message": "Unauthorized"})
    answer = await browser.client.get("/api/auth/user", headers={"x-session-id": "A" * 43})
    assert answer.status_code == 401


async def test_discord_is_asked_for_two_scopes_with_state_and_challenge(browser: Browser):
    asked = parse_qs(urlsplit(await browser.leave()).query)
    assert asked["scope"] == ["identify guilds"]
    assert asked["response_type"] == ["code"]
    assert asked["redirect_uri"] == [f"{PUBLIC_URL}/api/auth/discord/callback"]
    assert asked["code_challenge_method"] == ["S256"]
    assert len(asked["state"][0]) >= 43


async def test_cookies_are_out_of_scripts_reach_and_of_this_site_only(browser: Browser):
    start = await browser.client.get("/api/auth/discord")
    login = start.headers["set-cookie"]
    assert login.startswith("hf_login=")
    assert "Max-Age=600" in login
    back = await browser.come_back(await browser.agree(start.headers["location"], "ada"))
    kept, dropped = back.headers.get_list("set-cookie")
    assert kept.startswith("hf_session=")
    assert dropped.startswith('hf_login="";')
    for cookie in (login, kept):
        attributes = {part.strip().lower() for part in cookie.split(";")[1:]}
        assert {"httponly", "path=/", "samesite=lax"} <= attributes
        assert "secure" not in attributes
        assert not any(attribute.startswith("domain") for attribute in attributes)
    assert back.headers["cache-control"] == "no-store"
    assert back.headers["referrer-policy"] == "no-referrer"


async def test_on_https_the_cookies_are_this_hosts_alone_and_never_travel_in_the_clear(
    new_browser: Callable[[], Browser], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PUBLIC_URL", "https://localhost:3000")
    settings.cache_clear()
    await close_gateways()
    browser = new_browser()
    browser.client.base_url = "https://localhost:3000"
    start = await browser.client.get("/api/auth/discord")
    async with httpx.AsyncClient(verify=False) as outside:
        agreed = await outside.get(f"{start.headers['location']}&as=ada")
    back = await browser.client.get(agreed.headers["location"])
    kept, dropped = back.headers.get_list("set-cookie")
    out = await browser.client.get("/api/auth/logout", headers={"sec-fetch-site": "same-origin"})
    for cookie, name in (
        (start.headers["set-cookie"], "__Host-hf_login"), (kept, "__Host-hf_session"), (dropped, "__Host-hf_login"),
        (out.headers["set-cookie"], "__Host-hf_session"),
    ):  # fmt: skip
        assert cookie.startswith(f"{name}=")
        attributes = {part.strip().lower() for part in cookie.split(";")[1:]}
        assert {"secure", "httponly", "path=/", "samesite=lax"} <= attributes
        assert not any(attribute.startswith("domain") for attribute in attributes)


async def test_on_https_a_cookie_that_another_host_may_have_set_counts_for_nothing(
    browser: Browser, new_browser: Callable[[], Browser], monkeypatch: pytest.MonkeyPatch
):
    session_id = await browser.sign_in("ada")
    monkeypatch.setenv("PUBLIC_URL", "https://localhost:3000")
    settings.cache_clear()
    other = new_browser()
    other.client.base_url = "https://localhost:3000"
    for name, status in (("hf_session", 401), ("__Host-hf_session", 200)):
        answer = await other.client.get("/api/auth/user", headers={"cookie": f"{name}={session_id}"})
        assert answer.status_code == status, name


async def test_a_sign_in_returns_to_the_screen_it_came_from_and_to_no_other_site(browser: Browser):
    for asked, path in [
        ("/server-config?serverId=7", "/server-config?serverId=7&session="),
        ("/invite?session=forged", "/invite?session="),
        ("//evil.example/", "/dashboard?session="),
    ]:
        address = await browser.leave(f"/api/auth/discord?return={quote(asked, safe='')}")
        answer = await browser.come_back(await browser.agree(address, "ada"))
        assert answer.headers["location"] == path + str(browser.session_id)


@pytest.mark.parametrize(
    ("path", "back"),
    [
        ("/server-config?serverId=7&tab=health", "/server-config?serverId=7&tab=health&session="),
        ("/dashboard/server/7", "/dashboard/server/7?session="),
        ("/features", "/dashboard?session="),
        ("/login", "/dashboard?session="),
        ("/api/me/export", "/dashboard?session="),
        ("/server-config/../api/me", "/dashboard?session="),
        ("", "/dashboard?session="),
    ],
)
async def test_a_sign_in_from_the_address_of_a_members_screen_returns_to_it(browser: Browser, path: str, back: str):
    public = settings().public_url
    for origin, expected in ((public, back), ("https://evil.example", "/dashboard?session=")):
        address = await browser.leave(headers={"referer": f"{origin}{path}"})
        answer = await browser.come_back(await browser.agree(address, "ada"))
        assert answer.headers["location"] == expected + str(browser.session_id)


async def test_a_return_to_another_browser_than_the_one_that_left_signs_nobody_in(new_browser: Callable[[], Browser]):
    mallory, victim = new_browser(), new_browser()
    back = await mallory.agree(await mallory.leave(), "mallory")
    await victim.leave()
    answer = await victim.come_back(back)
    assert answer.headers["location"] == FAILED
    assert victim.session_id is None
    assert (await mallory.come_back(back)).headers["location"] == FAILED, "a state that was shown is used up"


async def test_a_return_without_any_login_cookie_signs_nobody_in(new_browser: Callable[[], Browser]):
    mallory, victim = new_browser(), new_browser()
    back = await mallory.agree(await mallory.leave(), "mallory")
    answer = await victim.come_back(back)
    assert (answer.status_code, answer.headers["location"]) == (302, FAILED)
    assert victim.session_id is None


async def test_a_return_counts_once(browser: Browser):
    back = await browser.agree(await browser.leave(), "ada")
    login = browser.client.cookies["hf_login"]
    assert "session=" in (await browser.come_back(back)).headers["location"]
    answer = await browser.client.get(back, headers={"cookie": f"hf_login={login}"})
    assert answer.headers["location"] == FAILED


@pytest.mark.parametrize("query", ["", "?state=x&code=y", "?error=access_denied", "?state=%00&code=%00", "?code=y"])
async def test_a_made_up_return_leads_to_the_error_screen_or_is_refused(browser: Browser, query: str):
    await browser.leave()
    answer = await browser.client.get(f"/api/auth/discord/callback{query}")
    assert answer.status_code in {302, 400}
    assert answer.headers.get("location", FAILED) == FAILED
    assert browser.session_id is None


async def test_who_declines_at_discord_is_not_signed_in(browser: Browser):
    state = parse_qs(urlsplit(await browser.leave()).query)["state"][0]
    answer = await browser.come_back(f"/api/auth/discord/callback?error=access_denied&state={state}")
    assert answer.headers["location"] == FAILED
    assert browser.session_id is None


async def test_a_code_that_discord_does_not_know_signs_nobody_in(browser: Browser):
    state = parse_qs(urlsplit(await browser.leave()).query)["state"][0]
    answer = await browser.come_back(f"/api/auth/discord/callback?code=made-up&state={state}")
    assert answer.headers["location"] == FAILED


async def test_a_state_older_than_ten_minutes_is_too_old(browser: Browser):
    from sqlmodel import update

    from models import SignIn, now, transaction

    back = await browser.agree(await browser.leave(), "ada")
    async with transaction() as db:
        await db.exec(update(SignIn).values(expires_at=now()))
    assert (await browser.come_back(back)).headers["location"] == FAILED


async def test_signing_in_again_makes_a_new_session_and_ends_the_old_one(browser: Browser):
    first = await browser.sign_in("ada")
    second = await browser.sign_in("ada")
    assert first != second
    browser.client.cookies.clear()
    assert (await browser.client.get("/api/auth/user", headers={"x-session-id": first})).status_code == 401
    assert (await browser.client.get("/api/auth/user", headers={"x-session-id": second})).status_code == 200


async def test_a_planted_session_is_ended_by_signing_in(browser: Browser, new_browser: Callable[[], Browser]):
    planted = await new_browser().sign_in("mallory")
    back = await browser.agree(await browser.leave(), "carol")
    cookies = f"hf_login={browser.client.cookies['hf_login']}; hf_session={planted}"
    browser.client.cookies.clear()
    answer = await browser.client.get(back, headers={"cookie": cookies})
    assert planted not in answer.headers["location"]
    assert (await browser.client.get("/api/auth/user")).json()["username"] == "carol"
    assert (await new_browser().client.get("/api/auth/user", headers={"x-session-id": planted})).status_code == 401


async def test_cookie_and_header_that_disagree_are_nobody(browser: Browser, new_browser: Callable[[], Browser]):
    mallory = await new_browser().sign_in("mallory")
    await browser.sign_in("ada")
    answer = await browser.client.get("/api/auth/user", headers={"x-session-id": mallory})
    assert answer.status_code == 401


async def test_connecting_again_keeps_the_person_and_renews_the_session(browser: Browser):
    first = await browser.sign_in("ada")
    address = await browser.leave("/api/auth/discord/connect")
    answer = await browser.come_back(await browser.agree(address, "ada"))
    assert answer.headers["location"].startswith("/invite?session=")
    assert browser.session_id != first


async def test_connecting_as_somebody_else_is_refused(browser: Browser):
    await browser.sign_in("ada")
    address = await browser.leave("/api/auth/discord/connect")
    answer = await browser.come_back(await browser.agree(address, "mallory"))
    assert answer.headers["location"] == FAILED
    assert (await browser.client.get("/api/auth/user")).json()["username"] == "ada"


async def test_logging_out_by_post_ends_the_session(browser: Browser):
    session_id = await browser.sign_in("ada")
    answer = await browser.client.post("/api/auth/logout", headers={"origin": PUBLIC_URL})
    assert (answer.status_code, answer.json()) == (200, {"success": True})
    assert browser.session_id is None
    assert (await browser.client.get("/api/auth/user", headers={"x-session-id": session_id})).status_code == 401
    assert (await browser.client.post("/api/auth/logout")).status_code == 200


async def test_logging_out_by_visit_ends_the_session_and_leads_home(browser: Browser):
    session_id = await browser.sign_in("ada")
    answer = await browser.client.get("/api/auth/logout", headers={"sec-fetch-site": "same-origin"})
    assert (answer.status_code, answer.headers["location"]) == (302, "/")
    assert browser.session_id is None
    assert (await browser.client.get("/api/auth/user", headers={"x-session-id": session_id})).status_code == 401


async def test_no_other_site_and_no_prefetch_logs_anybody_out(browser: Browser):
    await browser.sign_in("ada")
    for headers in (
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"purpose": "prefetch"},
        {"sec-purpose": "prefetch;prerender", "sec-fetch-site": "same-origin"},
        {"referer": "https://evil.example/page"},
        {"referer": "http://localhost:3000.evil.example/"},
    ):
        assert (await browser.client.get("/api/auth/logout", headers=headers)).status_code == 403, headers
    assert (await browser.client.get("/api/auth/user")).status_code == 200


async def test_a_foreign_page_cannot_post_with_the_cookie(browser: Browser):
    await browser.sign_in("ada")
    for headers in (
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:3001"},
        {"origin": "https://localhost:3000"},
        {"origin": ""},
        {"sec-fetch-site": "cross-site"},
        {"origin": PUBLIC_URL, "sec-fetch-site": "cross-site"},
    ):
        answer = await browser.client.post("/api/auth/logout", headers=headers)
        assert answer.status_code == 403, headers
        assert "message" in answer.json()
    assert (await browser.client.get("/api/auth/user")).status_code == 200


async def test_our_own_page_and_programs_can_post_with_the_cookie(browser: Browser):
    await browser.sign_in("ada")
    for headers in ({}, {"origin": PUBLIC_URL}, {"sec-fetch-site": "same-origin"}):
        assert (await browser.client.post("/api/admin/sync-servers", headers=headers)).status_code == 200


async def test_by_header_no_origin_is_needed(browser: Browser, new_browser: Callable[[], Browser]):
    session_id = await browser.sign_in("ada")
    headers = {"x-session-id": session_id, "origin": "https://program.example"}
    assert (await new_browser().client.post("/api/admin/sync-servers", headers=headers)).status_code == 200


async def test_a_person_lists_their_sessions_and_ends_them(browser: Browser, new_browser: Callable[[], Browser]):
    own = await browser.sign_in("carol")
    other = await new_browser().sign_in("carol")
    listed = (await browser.client.get("/api/me/sessions")).json()
    assert [session["current"] for session in listed].count(True) == 1
    assert len(listed) == 2
    assert other not in str(listed)
    elsewhere = next(session["id"] for session in listed if not session["current"])
    assert (await browser.client.delete(f"/api/me/sessions/{elsewhere}")).status_code == 200
    assert (await browser.client.delete(f"/api/me/sessions/{elsewhere}")).status_code == 404
    header = {"x-session-id": other}
    assert (await new_browser().client.get("/api/auth/user", headers=header)).status_code == 401
    headers = [{"x-session-id": await new_browser().sign_in("carol")}, {"x-session-id": own}]
    for signed_in in headers:
        assert (await new_browser().client.get("/api/auth/user", headers=signed_in)).status_code == 200
    assert (await browser.client.delete("/api/me/sessions")).status_code == 200
    assert (await browser.client.get("/api/auth/user")).status_code == 401
    for signed_out in headers:
        assert (await new_browser().client.get("/api/auth/user", headers=signed_out)).status_code == 401


@pytest.mark.parametrize("how", ["log out", "end this session", "sign in as another"])
async def test_the_last_log_out_ends_the_grant_at_discord_and_no_earlier_one(
    browser: Browser, new_browser: Callable[[], Browser], how: str
):
    from models import User, transaction
    from services.accounts.encryption import unseal

    async def sealed() -> bytes | None:
        from sqlmodel import col, select

        async with transaction() as db:
            return (await db.exec(select(User.access_token).order_by(col(User.id)))).first()

    await browser.sign_in("dave")
    second = new_browser()
    await second.sign_in("dave")
    token = await sealed()
    assert token is not None
    await browser.client.post("/api/auth/logout")
    assert await sealed() == token, "another session still needs it"
    if how == "log out":
        await second.client.post("/api/auth/logout")
    elif how == "sign in as another":
        await second.sign_in("carol")
    else:
        (mine,) = (await second.client.get("/api/me/sessions")).json()
        assert (await second.client.delete(f"/api/me/sessions/{mine['id']}")).status_code == 200
    assert await sealed() is None
    from gateways import gateways
    from gateways.transport.errors import Unauthorized

    with pytest.raises(Unauthorized):
        await gateways().oauth.me(unseal(token))


async def test_tokens_are_not_readable_in_the_database(browser: Browser):
    from sqlmodel import select

    from models import User, transaction
    from services.accounts.encryption import unseal

    await browser.sign_in("ada")
    async with transaction() as db:
        user = (await db.exec(select(User))).one()
    assert user.access_token is not None
    assert user.refresh_token is not None
    assert unseal(user.access_token).encode() not in user.access_token
    assert unseal(user.refresh_token) != unseal(user.access_token)


async def test_a_chosen_language_follows_a_person_to_other_browsers(new_browser: Callable[[], Browser]):
    first, second, third = new_browser(), new_browser(), new_browser()
    await first.sign_in("ada")
    assert first.client.cookies.get("hf_language") is None
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=Languages(api)), base_url=PUBLIC_URL, cookies=first.client.cookies
    ) as screens:
        chosen = await screens.get("/language/pt-BR", headers={"referer": f"{PUBLIC_URL}/account"})
    assert chosen.headers["location"] == "/account"
    await second.sign_in("ada")
    assert second.client.cookies["hf_language"] == "pt-BR"
    assert (await second.client.get("/api/me/export")).json()["account"]["language"] == "pt-BR"
    third.client.cookies.set("hf_language", "ja")
    await third.sign_in("ada")
    await second.sign_in("ada")
    assert {one.value for one in third.client.cookies.jar if one.name == "hf_language"} == {"ja"}
    assert second.client.cookies["hf_language"] == "pt-BR", "what was chosen in a browser stays there"
