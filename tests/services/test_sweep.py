"""The round over everybody: who is due in it, and what is tried again."""

from datetime import timedelta

import pytest

from models import Grant, now, transaction
from services import intents, sweep
from tests.builders import a_grant, a_member, a_rule, a_server, snowflake

pytestmark = pytest.mark.usefixtures("database")


@pytest.mark.parametrize("state", ["giving", "taking"])
async def test_a_round_tries_again_what_waits_for_discord_to_recover(state: str) -> None:
    async with transaction() as db:
        server = await a_server(db)
        grant = await a_grant(db, await a_member(db, server), await a_rule(db, server, snowflake()), state=state)
        grant.next_at, grant.attempts = now() + timedelta(minutes=5), 8
        db.add(grant)
    async with transaction() as db:
        assert await intents.open_intents(db, 10, set()) == []
        await sweep.start_sweep(db)
        (intent,) = await intents.open_intents(db, 10, set())
        assert (intent.id, intent.attempts) == (grant.id, 8)


async def test_a_round_leaves_alone_what_nobody_intends() -> None:
    async with transaction() as db:
        server = await a_server(db)
        grant = await a_grant(db, await a_member(db, server), await a_rule(db, server, snowflake()))
    async with transaction() as db:
        assert await sweep.start_sweep(db) == 1
        assert await intents.open_intents(db, 10, set()) == []
        assert (await db.get_one(Grant, grant.id)).next_at is None
