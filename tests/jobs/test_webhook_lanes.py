"""The lanes of the webhooks: an error of our own ends no other lane, and occupies none."""

import asyncio
from typing import Any

import pytest

from jobs import webhook_sender
from jobs.webhook_sender import WebhookSender
from models import Webhook, now, transaction
from services.accounts.developers import webhook_deliveries
from services.accounts.developers.webhook_client import WebhookClient
from services.accounts.developers.webhook_deliveries import Delivery, DeliveryTurn
from services.runtime.task_cancellation import stop
from tests.jobs.test_webhook_sender import a_webhook, every_delivery, note
from tests.jobs.test_webhook_sender import database as database
from tests.jobs.town import until

pytestmark = pytest.mark.usefixtures("database")


class Receivers(WebhookClient):
    """Receivers that accept everything once `go_on` is set, except that posting to `/broken` is an error of our own."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.posted: list[str] = []

    async def post(self, turn: DeliveryTurn, order: Delivery, body: bytes) -> str:
        if turn.url.endswith("/broken"):
            await self.begun.wait()
            raise ValueError("nobody foresaw this")
        self.posted.append(turn.url)
        self.begun.set()
        await self.go_on.wait()
        return ""


async def delivered() -> bool:
    """Return whether the last delivery has been made."""
    return (await every_delivery())[-1].state == "delivered"


async def test_an_error_of_our_own_with_one_server_ends_no_other_servers_turn() -> None:
    broken, fine = [await a_webhook(f"https://example.org/{name}", "role.given") for name in ("broken", "fine")]
    for server in (broken, fine):
        await note(server, "role.given", subject="42", role_id="7001")
    receivers = Receivers()

    async def rests() -> bool:
        async with transaction() as db:
            row = await db.get_one(Webhook, broken.id)
            return row.claimed_until is None and row.next_at > now()

    running = asyncio.create_task(WebhookSender(receivers).run())
    try:
        await until(rests)
        receivers.go_on.set()
        await until(delivered)
        assert not running.done()
    finally:
        await stop(running)
    assert receivers.posted == ["https://example.org/fine"]


async def test_a_claim_that_fails_leaves_no_lane_occupied(monkeypatch: pytest.MonkeyPatch) -> None:
    await note(await a_webhook("https://example.org/fine", "role.given"), "role.given", subject="42", role_id="7001")
    claim, faults = webhook_deliveries.claim, iter([ValueError("nobody foresaw this")])

    async def failing_once(*given: Any, **more: Any) -> DeliveryTurn | None:
        for fault in faults:
            raise fault
        return await claim(*given, **more)

    monkeypatch.setattr(webhook_deliveries, "claim", failing_once)
    monkeypatch.setattr(webhook_sender, "LANES", 1)
    receivers = Receivers()
    receivers.go_on.set()
    sender = WebhookSender(receivers)
    with pytest.raises(ExceptionGroup):
        await sender.run()
    running = asyncio.create_task(sender.run())
    try:
        await until(delivered, 20)
    finally:
        await stop(running)
