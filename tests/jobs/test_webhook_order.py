"""The order of events for a receiver that failed for hours, and one event that it alone refuses."""

from aiohttp import web
from sqlalchemy import text

from jobs.webhook_sender import WebhookSender
from models import Server, Webhook, transaction
from services.accounts.developers.webhooks import EVENTS
from tests.gateways.wire import Wire
from tests.jobs.test_webhook_sender import OK, a_webhook, bodies, every_delivery, note, send
from tests.jobs.test_webhook_sender import database as database
from tests.jobs.test_webhook_sender import receiver as receiver
from tests.jobs.test_webhook_sender import sender as sender


async def after_hours_of_failures(receiver: Wire) -> Server:
    """A webhook whose first delivery has a long pause, as after an outage, and that has a newer event."""
    server = await a_webhook(receiver.url + "/in", *EVENTS)
    await note(server, "role.given", subject="42", role_id="7001")
    async with transaction() as db:
        await db.execute(text("UPDATE webhook_delivery SET attempts = 8, next_at = now() + interval '2 hours'"))
        await db.execute(text("UPDATE webhook SET failures = 8, failing_since = now() - interval '5 hours'"))
    await note(server, "role.taken", subject="42", role_id="7001")
    return server


async def test_after_an_outage_everything_that_waited_comes_in_order(receiver: Wire, sender: WebhookSender) -> None:
    server = await after_hours_of_failures(receiver)
    async with transaction() as db:
        await db.execute(text("UPDATE webhook_delivery SET attempts = 7, next_at = now() + interval '1 hour' "
                              "WHERE attempts = 0"))  # fmt: skip
    await note(server, "rule.paused", rule_id=3, data={"rule": {"name": "Cats"}})
    await send(sender)
    assert [body["event"] for body in bodies(receiver)] == ["role.given", "role.taken", "rule.changed"]


async def test_a_delivery_that_alone_is_refused_holds_up_no_other(receiver: Wire, sender: WebhookSender) -> None:
    receiver.says(web.Response(status=400), OK)
    server = await after_hours_of_failures(receiver)
    await sender.once()
    first, second = await every_delivery()
    assert [(one.state, one.attempts) for one in (first, second)] == [("waiting", 9), ("delivered", 1)]
    receiver.says(web.Response(status=400))
    assert await sender.once(), "the rest is due at once, in order"
    async with transaction() as db:
        row = await db.get_one(Webhook, server.id)
        assert (row.failures, (await every_delivery())[0].attempts) == (1, 10)
    receiver.says(OK)
    await note(server, "breaker.tripped", role_id="7001", data={"wouldLose": 6, "holders": 9})
    async with transaction() as db:
        await db.execute(text("UPDATE webhook SET next_at = now()"))
    await send(sender)
    assert [one.state for one in await every_delivery()] == ["waiting", "delivered", "delivered"]


async def test_a_receiver_that_is_still_away_gets_two_requests_a_turn(receiver: Wire, sender: WebhookSender) -> None:
    receiver.says(web.Response(status=500))
    server = await after_hours_of_failures(receiver)
    await note(server, "role.given", subject="43", role_id="7001")
    await send(sender)
    assert [one.attempts for one in await every_delivery()] == [9, 1, 0]
