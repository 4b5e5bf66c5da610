"""Role writes in other guilds while Discord fails for one guild."""

import asyncio
from collections import Counter

import pytest
from sqlalchemy import text

from gateways import gateways
from gateways.discord.types import GuildMember, refusal
from gateways.transport.errors import ProviderConfused, ProviderDown
from jobs import role_writer
from jobs.role_writer import RoleWriter
from models import transaction
from services.roles.outbox import EACH
from services.runtime.task_cancellation import stop
from tests.jobs.conftest import product as product
from tests.jobs.town import until
from tests.services.roles.test_outbox import guilds

ODD = [
    ProviderDown("Discord", "HTTP 502"), ProviderConfused("Discord", "HTTP 200 to a write"),
    refusal(405, {"code": 0, "message": "405: Method Not Allowed"}),
    refusal(403, {"code": 40333, "message": "internal network error"}), refusal(403, "<html>"),
]  # fmt: skip


async def states(guild: int) -> Counter[str]:
    async with transaction() as db:
        found = await db.execute(text('SELECT state FROM "grant" WHERE server_id = :guild'), {"guild": guild})
        return Counter(state for (state,) in found.all())


@pytest.mark.parametrize("fault", ODD, ids=str)
async def test_one_guild_that_hangs_and_fails_slows_no_other(
    product: None, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    await guilds(2, 40)
    ends, at_once, most = asyncio.Event(), Counter[str](), Counter[str]()
    sent: list[tuple[str, str]] = []

    async def gives(guild: str, user: str, role: str, reason: str) -> None:
        if guild == "g2":
            sent.append((guild, user))
            return
        at_once[guild] += 1
        most[guild] = max(most[guild], at_once[guild])
        try:
            await ends.wait()
        finally:
            at_once[guild] -= 1
        raise fault

    monkeypatch.setattr(gateways().discord, "add_role", gives)
    monkeypatch.setattr(role_writer, "FIRST_REST_SECONDS", 0.01)

    async def all_held(guild: int) -> bool:
        return await states(guild) == {"held": 40}

    async def without_it(_: str, user: str) -> GuildMember:
        return GuildMember(user, user, None, None, None, frozenset(), pending=False)

    monkeypatch.setattr(gateways().discord, "member", without_it)
    task = asyncio.create_task(RoleWriter(asyncio.Event()).run())
    try:
        await until(lambda: all_held(2))
        assert most["g1"] <= 2 * EACH
        assert len(sent) == len(set(sent)) == 40, "nothing is doubled"
        ends.set()

        async def tried() -> bool:
            async with transaction() as db:
                question = 'SELECT count(*) FROM "grant" WHERE server_id = 1 AND attempts > 0'
                return (await db.execute(text(question))).scalar_one() > 0

        await until(tried)
        assert await states(1) == {"giving": 40}, "nothing is lost"
    finally:
        await stop(task)
