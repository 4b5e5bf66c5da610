"""What Discord offers while somebody types a command: it asks at each letter, so the answer must cost little."""

from typing import Any

import pytest

from bot.commands import roles, try_address
from bot.interaction.answering import InteractionContext
from bot.interaction.presses import Presses
from models import transaction
from services.core.actors import Actor
from services.guilds.members import MemberContext
from services.rules import views
from tests.bot.interaction.test_database_away import person
from tests.services.conftest import database as database
from tests.support.builders import a_rule, a_server


@pytest.mark.usefixtures("database")
async def test_rules_are_offered_by_name_without_reading_their_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    async with transaction() as db:
        server, other = await a_server(db), await a_server(db)
        server_id = server.id or 0
        shown, shadow = await a_rule(db, server, "71"), await a_rule(db, server, "72", state="shadow")
        await a_rule(db, other, "73")
        shown.name, shown.role_name, shadow.name, shadow.role_name = "Gold", "Whale", "Silver", "Dolphin"
        numbers = str(shown.id), str(shadow.id)
    offered = list[dict[str, str]]()

    async def member(_: object, **__: object) -> MemberContext:
        return MemberContext(Actor(1, "1", "ada"), server_id, "1", "Cats")

    def read(_: object) -> Any:
        raise AssertionError("the conditions may be long: nobody may make the bot read all of them at each letter")

    monkeypatch.setattr(InteractionContext, "find_member", member)
    monkeypatch.setattr(views, "parse_stored", read)
    await roles.Roles(Presses()).roles_like(person(offered), "")
    await roles.Roles(Presses()).roles_like(person(offered), "dol")
    await try_address.Trials().rules_like(person(offered), "")
    await try_address.Trials().rules_like(person(offered), "SIL")
    first, second = (
        (f"{name} (rule {number})", number) for name, number in zip(("Gold", "Silver"), numbers, strict=True)
    )
    assert offered == [{"Whale": "71"}, {}, dict([first, second]), dict([second])]
