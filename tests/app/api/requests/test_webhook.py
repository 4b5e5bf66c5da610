"""The webhook of a server through the API: its address, its secret, its deliveries."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from sqlmodel import delete, select, update

from app.api import api
from models import Webhook, WebhookDelivery, now, transaction
from models.db.session import AsyncSession
from services.accounts.developers import webhook_deliveries, webhooks
from tests.app.api.browsers import Browser
from tests.jobs.town import Town, a_town
from tests.support.statements import waits_for_a_lock

WALLET = {"type": "any_wallet"}


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    """A town that ada owns."""
    async with a_town(sandbox_url, "ada") as made:
        yield made


async def test_an_admin_sets_tests_and_deletes_a_webhook_and_sees_its_secret_once(browser: Browser, town: Town) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    at = f"/api/servers/{town.server_id}/webhook"
    assert (await browser.client.get(at)).json() == {"message": "This server has no webhook."}
    body = {"url": "https://hooks.example.org/in?key=s3cret", "events": ["rule.changed", "role.given"]}
    made = await browser.client.put(at, json=body)
    assert (made.status_code, made.headers["cache-control"]) == (200, "no-store")
    secret = made.json()["secret"]
    assert secret.startswith("whsec_")
    assert made.json()["events"] == ["role.given", "rule.changed"]
    again = (await browser.client.put(at, json={**body, "events": ["role.given"]})).json()
    assert (again["secret"], again["webhook"]["formerSecretUntil"]) == (None, None)
    rotated = (await browser.client.put(at, json={**body, "newSecret": True})).json()
    assert rotated["secret"] not in {None, secret}
    assert rotated["webhook"]["formerSecretUntil"] is not None
    assert (await browser.client.post(f"{at}/test")).status_code == 202
    assert (await browser.client.post(f"{at}/test")).status_code == 202, "one waits already"
    seen = await browser.client.get(at)
    assert [(one["event"], one["state"]) for one in seen.json()["deliveries"]] == [("test", "waiting")]
    assert seen.json()["waiting"] == 1
    log = (await browser.client.get(f"/api/servers/{town.server_id}/events?kind=webhook")).text
    assert "set the webhook to hooks.example.org." in log
    for shown in (seen.text, log):
        assert secret not in shown
        assert rotated["secret"] not in shown
    assert "s3cret" not in log
    assert (await browser.client.delete(at)).json() == {"success": True}
    assert (await browser.client.delete(at)).status_code == 404
    assert (await browser.client.post(f"{at}/test")).status_code == 404
    for url in (
        "", "http://hooks.example.org/", "ftp://hooks.example.org/", "https://user:pw@hooks.example.org/",
        "https://hooks.example.org:8443/", "https://10.0.0.1/", "https://[::1]/", "https://169.254.169.254/latest",
        "https://discord.com/api/webhooks/1/a", "https://ptb.Discordapp.com/", "https://dis%63ord.com/",
        "https://intranet/", "https://printer.local/", "https://db.internal/",
        f"https://hooks.example.org/{'a' * 1000}",
        "https://hooks.example.org/a b", "https://[", "https://hooks.example.org:x/",
    ):  # fmt: skip
        refused = await browser.client.put(at, json={"url": url, "events": ["role.given"]})
        assert refused.status_code == 400, f"{url}: {refused.text}"
    for events in ([], ["role.given", "user.signed_in"]):
        refused = await browser.client.put(at, json={"url": "https://hooks.example.org/", "events": events})
        assert refused.json()["message"].startswith("Choose at least one of: role.given")


async def signing(server_id: int) -> tuple[str, ...]:
    """Return the secrets that sign the webhook's next delivery."""
    async with transaction() as db:
        await db.exec(update(Webhook).values(claimed_until=None, next_at=now()))
        await db.exec(delete(WebhookDelivery))
        db.add(WebhookDelivery(server_id=server_id, event="test"))
        turn = await webhook_deliveries.claim(db, "worker")
        assert turn is not None
        return turn.secrets


@pytest.mark.parametrize("call", ["PUT", "POST"])
async def test_a_webhook_that_is_deleted_while_it_is_set_or_tested_is_deleted_after_that(
    browser: Browser, town: Town, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    at = f"/api/servers/{town.server_id}/webhook"
    body = {"url": "https://hooks.example.org/in", "events": ["role.given"]}
    await browser.client.put(at, json=body)
    read, go_on, get = asyncio.Event(), asyncio.Event(), AsyncSession.get

    async def pausing(self: AsyncSession, entity: Any, *given: Any, **options: Any) -> Any:
        found = await get(self, entity, *given, **options)
        if entity is Webhook and not read.is_set():
            read.set()
            await go_on.wait()
        return found

    monkeypatch.setattr(AsyncSession, "get", pausing)
    path, payload = (at, {**body, "events": ["role.taken"]}) if call == "PUT" else (f"{at}/test", None)
    first = asyncio.create_task(browser.client.request(call, path, json=payload))
    await read.wait()
    gone = asyncio.create_task(browser.client.delete(at))
    while not (gone.done() or await waits_for_a_lock()):
        pass
    go_on.set()
    assert (await first).is_success, (await first).text
    assert (await gone).status_code == 200
    async with transaction() as db:
        assert (await db.exec(select(Webhook))).all() == []
        assert (await db.exec(select(WebhookDelivery))).all() == []


async def test_a_secret_signs_for_a_day_whatever_secrets_are_made_after_it(
    browser: Browser, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An admin who has lost the answer makes another secret, while the receiver still has the first."""
    await browser.sign_in(town.people["ada"]["username"])
    at = f"/api/servers/{town.server_id}/webhook"
    body = {"url": "https://hooks.example.org/in", "events": ["role.given"]}
    clock, real = timedelta(), now
    monkeypatch.setattr(webhooks, "now", lambda: real() + clock)

    async def another() -> str:
        made = await browser.client.put(at, json={**body, "newSecret": True})
        return made.json()["secret"]

    clock = timedelta(hours=-20)
    first, second = await another(), await another()
    clock = timedelta(hours=-1)
    third = await another()
    clock = timedelta()
    assert await signing(town.server_id) == (third, second, first)
    clock = timedelta(hours=5)
    assert await signing(town.server_id) == (third, second), "the first one's day is over"
    clock = timedelta()
    newest = [await another() for _ in range(6)]
    assert await signing(town.server_id) == tuple(reversed(newest[-1 - webhooks.MOST_FORMER :]))
    async with transaction() as db:
        await db.exec(update(Webhook).values(old_until=real()))
    assert await signing(town.server_id) == (newest[-1],)
    assert await another() != newest[-1]
    assert (await signing(town.server_id))[1:] == (newest[-1],)


def test_no_former_secret_signs_for_longer_than_the_newest_of_them() -> None:
    """The end of the newest one was corrected, after the database's clock had been ahead."""
    end = now() + timedelta(hours=1)
    former = f"newest older:{(end + timedelta(days=3)).timestamp():.0f}"
    assert webhooks.in_force(former, end) == [("newest", end), ("older", end)]


async def test_a_former_secret_that_nobody_can_read_stops_no_new_one(browser: Browser, town: Town) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    at = f"/api/servers/{town.server_id}/webhook"
    body = {"url": "https://hooks.example.org/in", "events": ["role.given"]}
    made = [(await browser.client.put(at, json={**body, "newSecret": True})).json()["secret"] for _ in range(2)]
    async with transaction() as db:
        await db.exec(update(Webhook).values(old_secret=b"sealed with another key"))
    made.append((await browser.client.put(at, json={**body, "newSecret": True})).json()["secret"])
    assert await signing(town.server_id) == (made[2], made[1])


async def test_a_test_event_is_sent_at_once_after_another_one_was(browser: Browser, town: Town) -> None:
    """Somebody who has just deployed a secret sees whether deliveries are accepted; a waiting one is not doubled."""
    await browser.sign_in(town.people["ada"]["username"])
    at = f"/api/servers/{town.server_id}/webhook"
    body = {"url": "https://hooks.example.org/in", "events": ["role.given"]}
    await browser.client.put(at, json=body)

    async def sent() -> int:
        assert (await browser.client.post(f"{at}/test")).status_code == 202
        return len((await browser.client.get(at)).json()["deliveries"])

    assert (await sent(), await sent()) == (1, 1)
    async with transaction() as db:
        await db.exec(update(WebhookDelivery).values(state="delivered"))
    assert await sent() == 2


async def test_a_deletion_and_its_undo_are_both_queued(browser: Browser, town: Town) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    payload = {"serverId": town.server_id, "ruleName": "Cats", "roleId": await town.role("Holder"), "shadow": True}
    made = (await browser.client.post("/api/verification-rules", json={**payload, "expression": WALLET})).json()
    at = f"/api/servers/{town.server_id}"
    hook = {"url": "https://hooks.example.org/in", "events": ["rule.changed"]}
    assert (await browser.client.put(f"{at}/webhook", json=hook)).status_code == 200
    assert (await browser.client.delete(f"/api/verification-rules/{made['id']}")).status_code == 200
    (deleted,) = (await browser.client.get(f"{at}/events?kind=rule.deleted")).json()
    assert (await browser.client.post(f"{at}/events/{deleted['batch']}/undo")).status_code == 200
    async with transaction() as db:
        turn = await webhook_deliveries.claim(db, "test")
        assert turn is not None
        orders = await webhook_deliveries.due(db, turn)
    assert [json.loads(one.body or b"")["data"] for one in orders] == [
        {"ruleId": made["id"], "ruleName": "Cats", "ruleIds": [made["id"]], "change": "deleted"},
        {"ruleId": made["id"], "ruleName": "Cats", "ruleIds": [made["id"]], "change": "created"},
    ]


def test_the_document_describes_what_is_posted_and_what_a_receiver_answers() -> None:
    document = api.openapi()
    for event, at in document["webhooks"].items():
        posted = at["post"]
        assert posted["operationId"] == ("sent_test" if event == "test" else event.replace(".", "_"))
        assert posted["responses"].keys() == {"204", "default"}
        headers = {one["name"]: one for one in posted["parameters"]}
        assert headers.keys() == {"Holdfast-Signature", "Holdfast-Event", "Holdfast-Delivery"}
        assert all(one["description"] for one in headers.values())
    assert not document["components"]["schemas"].keys() & {"HTTPValidationError", "ValidationError"}
