"""The holders of a move's role by name, unless their names would reveal which wallet is whose."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, cast

import pytest

from gateways import Gateways
from models import Grant, ServerMove, now, transaction
from services.core.actors import Actor
from services.guilds import permissions
from services.roles.moves import coverage
from tests.support.builders import CONTRACT, a_member, a_rule, a_server, address, snowflake

pytestmark = pytest.mark.usefixtures("database")
TOKEN = {"type": "token_id", "chain": "base", "contract": CONTRACT, "tokenIds": ["1"]}
NOT_THE_TOKEN = {"all": [{"type": "any_wallet"}, {"not": TOKEN}]}


async def allowed(*_arguments: object) -> None:
    """Let everybody read the server."""


@pytest.mark.parametrize(
    ("condition", "right", "wrong", "named"),
    [
        (TOKEN, 4, 9, False),
        (TOKEN, 5, 1, True),
        (NOT_THE_TOKEN, 9, 1, False),
        (NOT_THE_TOKEN, 9, 0, True),
        (NOT_THE_TOKEN, 5, 5, True),
    ],
)
async def test_the_few_who_meet_a_rule_on_tokens_or_fail_it_are_not_named(
    monkeypatch: pytest.MonkeyPatch, condition: Mapping[str, Any], right: int, wrong: int, named: bool
) -> None:
    monkeypatch.setattr(permissions, "require_admin_to_read", allowed)
    role_id = snowflake()
    async with transaction() as db:
        server = await a_server(db)
        rule = await a_rule(db, server, role_id)
        rule.expression = dict(condition)
        move = ServerMove(server_id=server.id or 0, roles=[role_id], begins_at=now(), until=now() + timedelta(days=1))
        db.add_all([rule, move])
        for place in range(right + wrong):
            member = await a_member(db, server, roles=(role_id,), wallet=address())
            held = {"server_id": server.id or 0, "discord_id": member.discord_id, "role_id": role_id}
            db.add(Grant(**held, state="held", rule_ids=[], no_since=now() if place >= right else None))
    outside, nobody = cast("Gateways", None), Actor(1, "1", "ada")
    for standing, total in ((coverage.RIGHT, right), (coverage.WRONG, wrong)):
        async with transaction() as db:
            page = await coverage.holders(db, outside, nobody, server.id or 0, role_id, standing)
        assert (page.total, page.named, len(page.members)) == (total, named, total if named else 0)
