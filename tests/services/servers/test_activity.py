"""Choices of the log's filters."""

from types import SimpleNamespace
from typing import cast

import pytest

from gateways import Gateways
from models import Access, transaction
from services.core import audit
from services.core.actors import Actor
from services.guilds import permissions
from services.servers import activity
from tests.support.builders import a_member, a_server

pytestmark = pytest.mark.usefixtures("database")


async def test_people_who_run_the_server_can_be_chosen_and_not_each_member_who_asked_for_a_re_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def runs_it(*_: object) -> None:
        return None

    monkeypatch.setattr(permissions, "require_admin_to_read", runs_it)
    async with transaction() as db:
        server = await a_server(db)
        former, present, member = [(await a_member(db, server)).discord_id for _ in range(3)]
        db.add(Access(server_id=server.id or 0, discord_id=present, owner=True))
        asked = [
            audit.line("recheck.asked", server_id=server.id, actor=who, subject=member) for who in (present, member)
        ]
        chosen = audit.line("member.chose", server_id=server.id, actor=member, subject=member)
        changed = audit.line("log_channel.chosen", server_id=server.id, actor=former)
        await audit.record_all(db, [*asked, chosen, changed])
    async with transaction() as db:
        found = await activity.choices(db, cast("Gateways", SimpleNamespace()), Actor(1, "1", "ada"), server.id or 0)
    assert {who for who, _ in found.actors} == {former, present}
