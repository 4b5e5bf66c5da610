"""Webhooks: what is posted, signed and retried, and what is never sent."""

import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from jsonschema import validate
from sqlalchemy import text
from sqlmodel import select

import models
from app.api import api
from gateways.transport.safe_fetch import Fetcher
from jobs import webhook_sender
from jobs.webhook_sender import WebhookSender
from models import Event, Member, MemberChoice, Server, User, Wallet, Webhook, WebhookDelivery, now, transaction
from services.accounts import encryption
from services.accounts.developers import webhook_deliveries
from services.accounts.developers.webhook_client import WebhookClient
from services.accounts.developers.webhooks import EVENTS, TEST
from services.core import audit
from services.core.actors import Actor
from services.privacy import erasure, retention
from settings import settings
from tests.gateways.wire import Wire, wire
from tests.support.builders import a_member, a_server, address

OK = web.Response(status=204)


@pytest.fixture
async def database(database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[None]:
    """A fresh database behind `models.transaction`, and a key of this test's own."""
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    settings.cache_clear()
    await models.use(database_url)
    yield
    await models.use(None)
    settings.cache_clear()


@pytest.fixture
async def receiver() -> AsyncIterator[Wire]:
    """A receiver that accepts everything."""
    async with wire() as made:
        made.says(OK)
        yield made


@pytest.fixture
async def sender(database: None) -> AsyncIterator[WebhookSender]:
    """The sender of a sandbox, which is allowed to post to this machine."""
    client = Fetcher(agent="tests", own_machine=True, deadline=5)
    yield WebhookSender(WebhookClient(client))
    await client.close()


async def a_webhook(url: str, *events: str) -> Server:
    async with transaction() as db:
        server = await a_server(db)
        db.add(
            Webhook(
                server_id=server.id or 0, url=url, events=list(events), secret=encryption.seal("new"),
                old_secret=encryption.seal("old"), old_until=now() + timedelta(hours=1),
            )
        )  # fmt: skip
    return server


async def note(server: Server | None, kind: audit.Kind, **fields: Any) -> None:
    async with transaction() as db:
        server_id = None if server is None else server.id
        await audit.record(db, audit.line(kind, server_id=server_id, **fields))


async def send(sender: WebhookSender) -> None:
    while await sender.once():
        pass


async def every_delivery() -> list[WebhookDelivery]:
    async with transaction() as db:
        return list((await db.exec(select(WebhookDelivery).order_by(text("id")))).all())


async def due_now() -> None:
    """Make every retry due now."""
    async with transaction() as db:
        await db.execute(text("UPDATE webhook_delivery SET next_at = now()"))
        await db.execute(text("UPDATE webhook SET next_at = now()"))


def bodies(receiver: Wire) -> list[dict[str, Any]]:
    """Return the posted bodies, after checking that each has exactly the fields of the OpenAPI document."""
    found = [json.loads(asked.body) for asked in receiver.asked]
    for body in found:
        posted = api.openapi()["webhooks"][body["event"]]["post"]
        schema = posted["requestBody"]["content"]["application/json"]["schema"]
        validate(body, {**schema, "components": api.openapi()["components"]})
        fields = api.openapi()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]["properties"]
        data = api.openapi()["components"]["schemas"][fields["data"]["$ref"].rpartition("/")[2]]["properties"]
        assert (body.keys(), body["data"].keys()) == (fields.keys(), data.keys())
    return found


async def test_events_are_posted_in_order_signed_with_every_secret_in_force(
    receiver: Wire, sender: WebhookSender
) -> None:
    server = await a_webhook(receiver.url + "/in", *EVENTS)
    other = await a_webhook(receiver.url + "/other", "breaker.tripped")
    await note(
        server, "role.given", subject="42", role_id="7001", data={"ruleIds": [3], "readings": [{"wallet": "0x"}]}
    )
    await note(server, "rule.paused", rule_id=3, data={"rule": {"name": "Cats"}, "reason": "gone"})
    await note(server, "breaker.tripped", role_id="7001", data={"wouldLose": 6, "holders": 9})
    await note(server, "member.protected", subject="42")
    await note(other, "role.given", subject="42", role_id="7001")
    await send(sender)
    assert {asked.path for asked in receiver.asked} == {"/in"}
    found = bodies(receiver)
    assert [(one["event"], one["data"]) for one in found] == [
        ("role.given", {"discordId": "42", "roleId": "7001", "ruleIds": [3]}),
        ("rule.changed", {"ruleId": 3, "ruleName": "Cats", "ruleIds": [3], "change": "paused"}),
        ("breaker.tripped", {"roleId": "7001", "wouldLose": 6, "holders": 9}),
    ]
    assert {(one["serverId"], one["guildId"]) for one in found} == {(server.id, server.discord_id)}
    for asked, body in zip(receiver.asked, found, strict=True):
        t, *signed = asked.headers["Holdfast-Signature"].split(",")
        assert abs(int(t.removeprefix("t=")) - time.time()) < 60
        message = f"{t.removeprefix('t=')}.{asked.body}".encode()
        assert signed == [f"v1={hmac.new(secret, message, hashlib.sha256).hexdigest()}" for secret in (b"new", b"old")]
        assert (asked.headers["Holdfast-Delivery"], asked.headers["Holdfast-Event"]) == (body["id"], body["event"])
        assert asked.headers["Content-Type"] == "application/json"
    assert [(one.state, one.attempts) for one in await every_delivery()] == [("delivered", 1)] * 3


async def test_an_undo_that_changes_rules_is_posted_as_a_change(receiver: Wire, sender: WebhookSender) -> None:
    server = await a_webhook(receiver.url + "/in", "rule.changed")
    was, now_is = {"name": "Cats"}, {"name": "Dogs"}
    for of, more in (
        ("rule.deleted", {"rule": was, "rules": 1}),
        ("rule.changed", {"before": was, "after": now_is, "rules": 1}),
        ("rule.paused", {"rules": 1, "rule": was}),
        ("rule.paused", {"rules": 2, "ruleIds": [3, 4], "rule": was}),
        ("role.taken", {}),
    ):
        await note(server, "batch.undone", rule_id=3, role_id="7001", data={"of": of, "members": 0, **more})
    await note(server, "batch.undone", data={"of": "rule.migrated", "members": 0, "rules": 2})
    await send(sender)
    assert [one["data"] for one in bodies(receiver)] == [
        {"ruleId": 3, "ruleName": "Cats", "ruleIds": [3], "change": "created"},
        {"ruleId": 3, "ruleName": "Cats", "ruleIds": [3], "change": "changed"},
        {"ruleId": 3, "ruleName": "Cats", "ruleIds": [3], "change": "resumed"},
        {"ruleId": None, "ruleName": None, "ruleIds": [3, 4], "change": "resumed"},
        {"ruleId": None, "ruleName": None, "ruleIds": [], "change": "changed"},
    ]


async def test_an_event_that_is_rolled_back_is_never_posted(receiver: Wire, sender: WebhookSender) -> None:
    server = await a_webhook(receiver.url, *EVENTS)
    async with transaction() as db:
        await audit.record(db, audit.line("role.taken", server_id=server.id, subject="42", role_id="7001"))
        await db.rollback()
    await send(sender)
    assert receiver.asked == []


async def test_a_failed_delivery_is_tried_again_with_growing_pauses_and_given_up_after_a_day(
    receiver: Wire, sender: WebhookSender
) -> None:
    receiver.says(web.Response(status=302, headers={"Location": "/elsewhere"}), web.Response(status=500), "close")
    server = await a_webhook(receiver.url + "/in", *EVENTS)
    await note(server, "role.given", subject="42", role_id="7001")
    await note(server, "role.taken", subject="42", role_id="7001")
    pauses: list[int] = []
    for _ in range(3):
        await send(sender)
        first, second = await every_delivery()
        assert (first.state, second.attempts) == ("waiting", 0), "the rest waits with it"
        async with transaction() as db:
            asked = await db.execute(text("SELECT round(extract(epoch FROM next_at - now())) FROM webhook_delivery"))
            pauses.append(int(max(asked.scalars().all())))
            await db.execute(text("UPDATE webhook SET next_at = now()"))
            await db.execute(text("UPDATE webhook_delivery SET next_at = now() WHERE attempts > 0"))
    assert pauses == sorted(set(pauses))
    assert [asked.path for asked in receiver.asked] == ["/in"] * 3, "no redirect is followed"
    assert len({asked.headers["Holdfast-Delivery"] for asked in receiver.asked}) == 1
    async with transaction() as db:
        row = await db.get_one(Webhook, server.id)
        assert (row.failures, row.failing_since is None, row.gave_up_at) == (3, False, None)
        await db.execute(text("UPDATE webhook_delivery SET created_at = now() - interval '1 day' + interval '1 hour' "
                              "WHERE attempts > 0"))  # fmt: skip
        await db.execute(text("UPDATE webhook SET created_at = now() - interval '2 days', failures = 6"))
        await db.execute(text("UPDATE webhook_delivery SET attempts = 6 WHERE attempts > 0"))
    await due_now()
    await send(sender)
    receiver.says(OK)
    first, _ = await every_delivery()
    assert (first.state, first.attempts) == ("failed", 7), "no next try in time"
    assert first.fault == "127.0.0.1: the connection was lost"
    async with transaction() as db:
        assert (await db.get_one(Webhook, server.id)).gave_up_at is not None
    await due_now()
    await send(sender)
    assert [one.state for one in await every_delivery()] == ["failed", "delivered"]
    async with transaction() as db:
        row = await db.get_one(Webhook, server.id, populate_existing=True)
        assert (row.failures, row.failing_since, row.gave_up_at) == (0, None, None)


async def test_nothing_is_sent_to_an_address_that_is_not_public(receiver: Wire, database: None) -> None:
    server = await a_webhook(receiver.url, TEST)
    client = Fetcher(agent="tests", deadline=5, lookup=_private)
    for url in (receiver.url, "https://hooks.example/"):
        async with transaction() as db:
            await db.execute(text("DELETE FROM webhook_delivery"))
            await db.execute(text("UPDATE webhook SET url = :url, next_at = now()"), {"url": url})
            db.add(WebhookDelivery(server_id=server.id or 0, event=TEST))
        await send(WebhookSender(WebhookClient(client)))
        [row] = await every_delivery()
        assert (row.state, row.attempts) == ("waiting", 1)
        assert "https links" in str(row.fault) or "public" in str(row.fault)
    await client.close()
    assert receiver.asked == []


async def _private(host: str, port: int) -> tuple[str, ...]:
    return ("10.0.0.7",)


async def proved(server: Server, *, share: bool) -> tuple[Member, User, str]:
    """Make a member who has just proved a wallet, with the line that the log has about it."""
    wallet = address()
    async with transaction() as db:
        member = await a_member(db, server, wallet=wallet)
        user = (await db.exec(select(User).where(User.discord_id == member.discord_id))).one()
        row = (await db.exec(select(Wallet).where(Wallet.user_id == user.id))).one()
        db.add(MemberChoice(server_id=server.id or 0, user_id=user.id or 0, share_wallets=share))
        await db.flush()
        line = audit.line(
            "wallet.proved", actor=member.discord_id, subject=member.discord_id,
            data={"walletId": row.id, "method": "opensea_bio"},
        )  # fmt: skip
        await audit.record(db, line)
    return member, user, wallet


async def test_a_wallet_is_posted_shortened_and_only_to_servers_that_its_owner_shares_it_with(
    receiver: Wire, sender: WebhookSender
) -> None:
    server = await a_webhook(receiver.url + "/in", *EVENTS)
    await a_webhook(receiver.url + "/elsewhere", *EVENTS)
    await proved(server, share=False)
    assert await every_delivery() == []
    member, _, wallet = await proved(server, share=True)
    await send(sender)
    [asked] = receiver.asked
    assert (asked.path, bodies(receiver)[0]["data"]["discordId"]) == ("/in", member.discord_id)
    shown = bodies(receiver)[0]["data"]["wallet"]
    assert shown.startswith(wallet[:6])
    assert wallet[2:] not in asked.body


async def test_what_waits_is_dropped_when_consent_is_withdrawn_or_the_member_is_forgotten(
    receiver: Wire, sender: WebhookSender
) -> None:
    server = await a_webhook(receiver.url, *EVENTS)
    _, user, _ = await proved(server, share=True)
    async with transaction() as db:
        choice = await db.get_one(MemberChoice, (server.id, user.id))
        choice.share_wallets = False
        db.add(choice)
    member, user, _ = await proved(server, share=True)
    await note(server, "role.given", subject=member.discord_id, role_id="7001")
    async with transaction() as db:
        await erasure.forget(db, Actor(user.id or 0, user.discord_id, user.username))
    await send(sender)
    assert receiver.asked == []
    assert [(one.state, one.attempts) for one in await every_delivery()] == [("dropped", 0)] * 3


async def test_servers_take_turns_and_one_is_served_by_one_worker_at_a_time(
    receiver: Wire, sender: WebhookSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_deliveries, "AT_ONCE", 2)
    busy, quiet = [await a_webhook(f"{receiver.url}/{name}", "role.given") for name in ("busy", "quiet")]
    for number in range(5):
        await note(busy, "role.given", subject=str(number), role_id="7001")
    await note(quiet, "role.given", subject="42", role_id="7001")
    async with transaction() as db:
        held = await webhook_deliveries.claim(db, "another")
    assert held is not None
    assert held.server_id == busy.id
    assert await sender.once()
    assert [asked.path for asked in receiver.asked] == ["/quiet"]
    assert not await sender.once()
    async with transaction() as db:
        await webhook_deliveries.release(db, held)
    await send(sender)
    assert [asked.path for asked in receiver.asked] == ["/quiet", *["/busy"] * 5]
    assert [one["data"]["discordId"] for one in bodies(receiver)][1:] == ["0", "1", "2", "3", "4"]


async def test_what_waited_for_a_day_is_given_up_without_another_attempt(receiver: Wire, sender: WebhookSender) -> None:
    server = await a_webhook(receiver.url, *EVENTS)
    async with transaction() as db:
        for hours in (30, 25, 1):
            at = now() - timedelta(hours=hours)
            db.add(WebhookDelivery(server_id=server.id or 0, event=TEST, created_at=at))
        await db.execute(text("UPDATE webhook SET created_at = now() - interval '2 days'"))
    await send(sender)
    states = [(one.state, one.attempts) for one in await every_delivery()]
    assert states == [("failed", 0), ("failed", 0), ("delivered", 1)]
    assert len(receiver.asked) == 1


async def test_receivers_that_fail_or_are_slow_leave_lanes_to_the_others(
    receiver: Wire, sender: WebhookSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = await a_webhook(receiver.url + "/quick", "role.given")
    failing = await a_webhook(receiver.url + "/failing", "role.given")
    for server in (quick, failing):
        await note(server, "role.given", subject="1", role_id="7001")
    async with transaction() as db:
        assert await webhook_deliveries.claim(db, "first", healthy=True) is None, "nothing is known of a new receiver"
    await send(sender)
    receiver.says(web.Response(status=500))
    await note(failing, "role.given", subject="2", role_id="7001")
    await send(sender)
    receiver.says(OK)
    for server in (quick, failing):
        await note(server, "role.given", subject="3", role_id="7001")
    await due_now()
    async with transaction() as db:
        turn = await webhook_deliveries.claim(db, "first", healthy=True)
        assert turn is not None
        assert (turn.server_id, await webhook_deliveries.claim(db, "second", healthy=True)) == (quick.id, None)
        await webhook_deliveries.release(db, turn)
    monkeypatch.setattr(webhook_sender, "SLOW_SECONDS", -1.0)
    await send(sender)
    await note(quick, "role.given", subject="4", role_id="7001")
    async with transaction() as db:
        assert await webhook_deliveries.claim(db, "first", healthy=True) is None, "its receiver was slow"


async def test_a_secret_sealed_with_a_lost_key_fails_for_its_own_server_only(
    receiver: Wire, sender: WebhookSender
) -> None:
    broken, fine = [await a_webhook(f"{receiver.url}/{name}", "role.given") for name in ("broken", "fine")]
    async with transaction() as db:
        row = await db.get_one(Webhook, broken.id)
        row.secret = b"sealed with another key"
        db.add(row)
    for server in (broken, fine):
        await note(server, "role.given", subject="42", role_id="7001")
    await send(sender)
    assert [asked.path for asked in receiver.asked] == ["/fine"]
    first, second = await every_delivery()
    assert (first.state, first.fault, second.state) == ("waiting", webhook_sender.UNREADABLE, "delivered")


async def test_no_wallet_is_posted_once_the_bot_has_left(receiver: Wire, sender: WebhookSender) -> None:
    server = await a_webhook(receiver.url, *EVENTS)
    await proved(server, share=True)
    async with transaction() as db:
        row = await db.get_one(Server, server.id)
        row.bot_left_at = now()
        db.add(row)
    await proved(server, share=True)
    await send(sender)
    assert [one.state for one in await every_delivery()] == ["dropped"]
    assert receiver.asked == []


async def test_old_deliveries_are_deleted(database: None) -> None:
    server = await a_webhook("https://hooks.example/", TEST)
    async with transaction() as db:
        db.add(WebhookDelivery(server_id=server.id or 0, event=TEST, created_at=now() - timedelta(days=5)))
        db.add(WebhookDelivery(server_id=server.id or 0, event=TEST))
        await db.flush()
        await webhook_deliveries.clear(db)
        assert len((await db.exec(select(WebhookDelivery))).all()) == 1
        assert (await db.exec(select(Event))).all() == []


async def test_the_secret_survives_a_change_of_the_key_once_the_previous_one_is_dropped(
    receiver: Wire, sender: WebhookSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    def keys(present: str, previous: str) -> None:
        monkeypatch.setenv("SECRET_KEY", present)
        monkeypatch.setenv("SECRET_KEY_PREVIOUS", previous)
        settings.cache_clear()

    keys("the first", "")
    server = await a_webhook(receiver.url, *EVENTS)
    keys("the second", "the first")
    for _ in range(2):
        async with transaction() as db:
            await retention.housekeep(db)
    keys("the second", "")
    await note(server, "role.given", subject="42", role_id="7001")
    await send(sender)
    [asked] = receiver.asked
    t, *signed = asked.headers["Holdfast-Signature"].split(",")
    message = f"{t.removeprefix('t=')}.{asked.body}".encode()
    assert signed == [f"v1={hmac.new(secret, message, hashlib.sha256).hexdigest()}" for secret in (b"new", b"old")]


async def test_an_event_that_cannot_be_read_delays_only_its_own_server(
    sender: WebhookSender, receiver: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = await a_webhook(receiver.url, "role.given"), await a_webhook(receiver.url, "role.given")
    for server in (bad, good):
        await note(server, "role.given", subject="1", role_id="7", data={"ruleIds": []})
    read = webhook_deliveries._data

    def data(row: Any) -> dict[str, Any] | None:
        if row["server_id"] == bad.id:
            raise ValueError("unreadable")
        return read(row)

    monkeypatch.setattr(webhook_deliveries, "_data", data)
    with pytest.raises(ValueError, match="unreadable"):
        await sender.once()
    await send(sender)
    assert [one["serverId"] for one in bodies(receiver)] == [good.id]
    assert {row.server_id: row.state for row in await every_delivery()} == {bad.id: "waiting", good.id: "delivered"}
