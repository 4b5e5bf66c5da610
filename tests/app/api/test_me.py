"""Calls about the caller: their data as a file, their choices for each server, and being forgotten."""

import gc
from collections.abc import Callable
from tempfile import SpooledTemporaryFile
from typing import Any
from unittest.mock import AsyncMock

import pytest
from sqlmodel import select
from starlette.requests import ClientDisconnect, Request

from app.api import me
from gateways import gateways
from gateways.transport.errors import Unauthorized
from models import User, Wallet, transaction
from services.accounts import sessions, users
from services.accounts.encryption import unseal
from services.core.actors import Actor
from services.privacy import export
from services.runtime import rate_limits
from settings import settings
from tests.app.api.browsers import Browser
from tests.app.api.requests.test_problems import signed_in
from tests.support.builders import a_member, a_server


async def a_server_of_zoe() -> int:
    """Store a server with the bot in which the caller of `signed_in` is a member, and return its internal id."""
    async with transaction() as db:
        server = await a_server(db)
        member = await a_member(db, server)
        member.discord_id = "42"
        db.add(member)
        return server.id or 0


async def test_everything_about_oneself_is_one_file(browser: Browser, product: None):
    headers = await signed_in()
    answer = await browser.client.get("/api/me/export", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["content-disposition"] == 'attachment; filename="holdfast-my-data.json"'
    assert answer.headers["cache-control"] == "no-store"
    document = answer.json()
    assert document["account"]["username"] == "zoe"
    assert len(document["sessions"]) == 1
    assert headers["x-session-id"] not in answer.text


async def test_the_file_of_everything_is_closed_when_nobody_reads_it(product: None, monkeypatch: pytest.MonkeyPatch):
    files: list[Any] = []

    class Noted(SpooledTemporaryFile):
        def __init__(self, *how: Any, **more: Any) -> None:
            super().__init__(*how, **more)
            files.append(self)

    monkeypatch.setattr(me, "SpooledTemporaryFile", Noted)
    await signed_in()
    async with transaction() as db:
        zoe = (await db.exec(select(User))).one()
    scope = {"type": "http", "asgi": {"spec_version": "2.4"}}

    async def left(_: object) -> None:
        raise OSError("the client closed the connection")

    gc.disable()  # a file may not wait for it, because it can be large
    try:
        sent = await me.export_me(Actor(zoe.id or 0, zoe.discord_id, zoe.username), Request(scope))
        assert [file.closed for file in files] == [False]
        with pytest.raises(ClientDisconnect):
            await sent(scope, AsyncMock(), left)
        assert [file.closed for file in files] == [True]
    finally:
        gc.enable()


async def test_nothing_is_read_for_the_head_of_the_file_of_everything(
    browser: Browser, product: None, monkeypatch: pytest.MonkeyPatch
):
    def read(*_: object) -> None:
        raise AssertionError("nobody asked for the file")

    headers = await signed_in()
    got = await browser.client.get("/api/me/export", headers=headers)
    monkeypatch.setattr(export, "export", read)
    asked = await browser.client.head("/api/me/export", headers=headers)
    assert (asked.status_code, asked.content) == (200, b"")
    named = ("content-disposition", "content-type", "cache-control")
    assert [asked.headers[name] for name in named] == [got.headers[name] for name in named]


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("Замок", "filename*=utf-8''%D0%B7%D0%B0%D0%BC%D0%BE%D0%BA-my-data.json"),
        ('Keep "it" /now', "filename*=utf-8''keep%20%22it%22%20%2Fnow-my-data.json"),
    ],
)
async def test_the_file_about_oneself_may_have_any_products_name(
    browser: Browser, product: None, monkeypatch: pytest.MonkeyPatch, name: str, file: str
):
    headers = await signed_in()
    monkeypatch.setenv("PRODUCT_NAME", name)
    settings.cache_clear()
    answer = await browser.client.get("/api/me/export", headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-disposition"] == f"attachment; {file}"


async def test_choices_are_made_for_each_server_and_what_is_absent_stays(browser: Browser, product: None):
    headers, server_id = await signed_in(), await a_server_of_zoe()
    (listed,) = (await browser.client.get("/api/me/servers", headers=headers)).json()
    assert (listed["serverId"], listed["useWallets"], listed["shareWallets"]) == (server_id, True, False)
    for sent, use, share in (
        ({"shareWallets": True}, True, True),
        ({"useWallets": False}, False, True),
        ({"useWallets": True, "shareWallets": False}, True, False),
        ({}, True, False),
    ):
        answer = await browser.client.put(f"/api/me/servers/{server_id}", json=sent, headers=headers)
        assert answer.status_code == 200, answer.text
        assert (answer.json()["useWallets"], answer.json()["shareWallets"]) == (use, share)


@pytest.mark.parametrize(
    ("path", "body", "status"), [("999999", {}, 404), ("x", {}, 404), ("1", {"useWallets": 1}, 422)]
)
async def test_a_choice_for_no_server_of_ones_own_or_of_another_shape_is_refused(
    browser: Browser, product: None, path: str, body: dict[str, object], status: int
):
    answer = await browser.client.put(f"/api/me/servers/{path}", json=body, headers=await signed_in())
    assert answer.status_code == status, answer.text


async def test_being_forgotten_signs_out_everywhere_and_ends_discords_grant(
    browser: Browser, new_browser: Callable[[], Browser], discord: None
):
    await browser.sign_in("erin")
    other = new_browser()
    await other.sign_in("erin")
    async with transaction() as db:
        sealed = (await db.exec(select(User.access_token))).one()
    assert sealed is not None
    assert (await browser.client.get("/api/me/forget")).json() == []
    answer = await browser.client.delete("/api/me")
    assert (answer.status_code, answer.json()) == (200, {"success": True, "roles": []})
    assert browser.session_id is None
    assert (await other.client.get("/api/auth/user")).status_code == 401
    async with transaction() as db:
        assert (await db.exec(select(User))).all() == []
    with pytest.raises(Unauthorized):
        await gateways().oauth.me(unseal(sealed))
    await browser.sign_in("erin")
    user = (await browser.client.get("/api/auth/user")).json()
    assert (user["username"], user["isVerified"], user["verifiedWallets"]) == ("erin", False, [])


async def test_a_foreign_page_cannot_have_somebody_forgotten(browser: Browser, discord: None):
    await browser.sign_in("erin")
    assert (await browser.client.delete("/api/me", headers={"origin": "https://evil.example"})).status_code == 403
    assert (await browser.client.get("/api/auth/user")).status_code == 200


async def test_wallets_are_handed_over_by_the_calls_of_both_accounts(
    browser: Browser, new_browser: Callable[[], Browser], product: None
):
    await rate_limits.forget()
    headers = await signed_in()
    assert (await browser.client.post("/api/me/handover", json={}, headers=headers)).status_code == 404
    async with transaction() as db:
        (user,) = (await db.exec(select(User))).all()
        other = await users.ensure(db, "43", "amy")
        for wallet in ("0x" + "1" * 40, "0x" + "2" * 40):
            db.add(Wallet(user_id=user.id or 0, family="evm", address=wallet, method="transaction"))
        session = await sessions.open_session(db, other, "A browser")
    made = await browser.client.post("/api/me/handover", json={}, headers=headers)
    assert (made.status_code, made.json()["wallets"]) == (201, 2)
    code, amy, away = {"code": made.json()["code"]}, new_browser().client, {"x-session-id": session}
    assert (await browser.client.post("/api/me/handover/take", json=code, headers=headers)).status_code == 400
    seen = await amy.post("/api/me/handover/look", json=code, headers=away)
    assert (seen.json()["account"], len(seen.json()["wallets"]), seen.json()["moved"]) == ("zoe", 2, False)
    assert (await amy.post("/api/me/handover/take", json=code, headers=away)).json()["moved"] is True
    assert (await amy.post("/api/me/handover/take", json=code, headers=away)).status_code == 400
    again = await amy.post("/api/me/handover", json={"walletId": 10**9}, headers=away)
    assert again.status_code == 404
    assert (await amy.delete("/api/me/handover", headers=away)).status_code == 200
