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
from services.servers.activity import LogFilter
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


async def test_a_name_turns_no_sentence_around_and_one_that_nobody_can_see_is_none() -> None:
    visible = "\u0639\u0644\u06cc\u200c\u0631\u0636\u0627"
    names = ("\u202eeve\u2066", "eve\n\u200b: all is well", "\u200b\u202e", visible)
    async with transaction() as db:
        server = await a_server(db)
        members = [await a_member(db, server) for _ in names]
        for one, name in zip(members, names, strict=True):
            one.name = name
        about = {"server_id": server.id, "role_id": "7", "data": {"roleName": "\u202eGold"}}
        await audit.record_all(db, [audit.line("role.given", subject=one.discord_id, **about) for one in members])
    async with transaction() as db:
        found = {line.subject: line for line in await activity.lines(db, server.id or 0, LogFilter())}
    nobody = f"somebody (ID {members[2].discord_id})"
    for one, shown in zip(members, ("eve", "eve : all is well", nobody, visible), strict=True):
        line = found[one.discord_id]
        assert (line.subject_name, line.role_name) == (shown, "Gold")
        assert shown.casefold() in line.text.casefold()
        assert "Gold" in line.text
        assert "\u202e" not in line.text
