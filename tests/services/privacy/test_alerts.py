"""Alerts name nobody who was forgotten, and one about stopped removals ends when an admin decides."""

from sqlmodel import select

from models import Alert, Breaker, RivalMove, now, transaction
from services.health import alerts
from services.privacy import erasure
from services.roles import breaker
from tests.services.privacy.test_preferences import somebody, tables_that_name
from tests.support.builders import a_server, snowflake


async def test_no_alert_names_who_was_forgotten(database: str) -> None:
    async with transaction() as db:
        one = await somebody(db)
        who = one.actor.discord_id
        await db.delete(one.grant)
        elsewhere = await a_server(db)
        elsewhere.log_channel_id = snowflake()
        db.add(elsewhere)
        db.add(
            RivalMove(
                server_id=elsewhere.id or 0, discord_id=snowflake(), role_id="7001", taken=True, naming="named",
                actor_id=who, actor_name="Mallory the moderator", against=True, at=now(),
            )
        )  # fmt: skip
    async with transaction() as db:
        await alerts.record_begun_and_ended(db)
        assert [row.key for row in (await db.exec(select(Alert))).all()] == [f"rival:7001:{who}"]
    async with transaction() as db:
        await erasure.forget(db, one.actor)
    async with transaction() as db:
        assert await erasure.finish(db) == 1
    async with transaction() as db:
        await alerts.record_begun_and_ended(db)
    async with transaction() as db:
        assert "alert" not in await tables_that_name(db, who, "Mallory the moderator")


async def test_an_alert_about_stopped_removals_ends_when_an_admin_dismisses_them(database: str) -> None:
    async with transaction() as db:
        server = await a_server(db)
        server.log_channel_id = snowflake()
        db.add(server)
        await db.flush()
        db.add(Breaker(server_id=server.id or 0, role_id="7001", would_lose=6, holders=9))
    async with transaction() as db:
        await alerts.record_begun_and_ended(db)
    async with transaction() as db:
        assert await breaker.dismiss(db, server.id or 0, "ada") == 1
    async with transaction() as db:
        await alerts.record_begun_and_ended(db)
        assert [row.ended_at is None for row in (await db.exec(select(Alert))).all()] == [False]
