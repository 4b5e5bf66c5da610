"""An error of our own with one count, alert or log is recorded and delays no other."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from sqlmodel import select

from gateways import Gateways
from jobs import alert_sender, rival_namer
from jobs.alert_sender import ALERTS
from jobs.census_taker import CensusTaker
from models import Alert, Census, Reach, RivalMove, now, transaction
from services.collections.census import count_by_transfers, reach
from services.collections.census.census_queue import CensusTask
from services.guilds.role_safety import ADMINISTRATOR
from services.health import alerts
from services.health.alerts import AlertMessage
from services.roles import rival_names
from services.roles.rival_names import RoleLog, Search
from services.rules import pausing
from services.rules.expression import Requirement
from services.runtime import schedules
from tests.support.builders import CONTRACT, a_rule, a_server, snowflake

pytestmark = pytest.mark.usefixtures("product")


async def test_an_alert_that_cannot_be_posted_delays_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    async with transaction() as db:
        await schedules.ensure(db, ALERTS, timedelta())
        for _ in range(2):
            server = await a_server(db)
            server.log_channel_id = snowflake()
            db.add(server)
            rule = await a_rule(db, server, snowflake())
            await pausing.pause_role(db, server.id or 0, rule.role_id, "It stands above the bot.", "above_bot")
    posted = list[int]()

    async def post(_: Gateways, together: Sequence[AlertMessage]) -> None:
        (alert,) = together
        posted.append(alert.alert_id)
        if len(posted) == 1:
            raise ValueError("nobody foresaw this")

    monkeypatch.setattr(alerts, "post", post)
    await alert_sender.once()
    async with transaction() as db:
        first, second = [await db.get_one(Alert, alert_id) for alert_id in posted]
    assert first.id is not None
    assert second.id is not None
    assert first.id < second.id
    assert (first.told_at, first.attempts, second.attempts) == (None, 1, 0)
    assert "ValueError" in (first.last_error or "")
    assert second.told_at is not None


@pytest.mark.parametrize(("most", "state"), [(2, "counting"), (1, "failed")])
async def test_a_count_that_cannot_be_advanced_is_tried_again_and_ends_after_some_tries(
    monkeypatch: pytest.MonkeyPatch, most: int, state: str
) -> None:
    async with transaction() as db:
        server = await a_server(db)
        await reach.start(db, server.id or 0, Requirement("basic", "base", CONTRACT))

    async def failing(_: Gateways, task: CensusTask) -> None:
        raise ValueError("nobody foresaw this")

    monkeypatch.setattr(count_by_transfers, "_add_up_transfers", failing)
    monkeypatch.setattr(count_by_transfers, "FIRST_PAUSE", count_by_transfers.LONGEST_PAUSE)
    monkeypatch.setattr(count_by_transfers, "MOST_FAULTS", most)
    taker = CensusTaker("test")
    assert await taker.once()
    async with transaction() as db:
        census = (await db.exec(select(Census))).one()
    assert (census.state, census.holder, census.faults) == (state, None, most - 1)
    assert census.next_at > now() or state == "failed"
    while state == "failed" and await taker.once():
        pass
    async with transaction() as db:
        asked = (await db.exec(select(Reach))).one()
    assert (asked.state, "ValueError" in (asked.reason or "")) == (state, state == "failed")


async def test_a_log_that_cannot_be_read_is_left_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    async with transaction() as db:
        for _ in range(2):
            server = await a_server(db)
            server.bot_permissions = ADMINISTRATOR
            db.add(server)
            db.add(
                RivalMove(
                    server_id=server.id or 0, discord_id=snowflake(), role_id=snowflake(), taken=True, at=now(),
                    next_at=now(),
                )
            )  # fmt: skip
    searched = list[int]()

    async def read(_: Gateways, search: Search) -> RoleLog:
        searched.append(search.server_id)
        if len(searched) == 1:
            raise ValueError("nobody foresaw this")
        return RoleLog()

    monkeypatch.setattr(rival_names, "read", read)
    assert await rival_namer.once()
    assert await rival_namer.once()
    assert len(set(searched)) == 2
    async with transaction() as db:
        left = await db.exec(select(RivalMove.next_at).where(RivalMove.server_id == searched[0]))
    assert (left.one() or now()) > now() + rival_names.REFUSED_PAUSE / 2
