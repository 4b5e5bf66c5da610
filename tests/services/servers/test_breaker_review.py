"""The review of stopped removals names some members and counts all."""

from typing import Any

import pytest

from models import Breaker, now, transaction
from services.servers import breaker_review
from tests.support.builders import a_grant, a_member, a_rule, a_server, snowflake

pytestmark = pytest.mark.usefixtures("database")


async def test_of_however_many_members_who_wait_only_the_named_ones_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breaker_review, "NAMED", 2)
    read, readings_of = list[Any](), breaker_review.readings_of
    monkeypatch.setattr(breaker_review, "readings_of", lambda evidence: read.append(evidence) or readings_of(evidence))
    async with transaction() as db:
        rule = await a_rule(db, server := await a_server(db), snowflake())
        for name in ("eve", "Dan", "carol", "bob"):
            member = await a_member(db, server)
            member.name = name
            (await a_grant(db, member, rule)).held_back_at = now()
        trip = Breaker(server_id=server.id or 0, role_id=rule.role_id, would_lose=4, holders=4)
        db.add(trip)
    async with transaction() as db:
        view = await breaker_review._view(db, trip)
    assert ([one.name for one in view.losers], view.total, len(read)) == (["bob", "carol"], 4, 2)


async def test_a_trip_for_which_nobody_waits_names_nobody() -> None:
    async with transaction() as db:
        rule = await a_rule(db, server := await a_server(db), snowflake())
        trip = Breaker(server_id=server.id or 0, role_id=rule.role_id, would_lose=4, holders=4)
        db.add(trip)
    async with transaction() as db:
        view = await breaker_review._view(db, trip)
    assert (view.losers, view.total) == ((), 0)
