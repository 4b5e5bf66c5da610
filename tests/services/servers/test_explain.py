"""What is said about a member's role that is going to be taken: when, or after what."""

import pytest

from models import transaction
from services.servers import explain
from tests.support.builders import a_grant, a_member, a_rule, a_server, address, snowflake

pytestmark = pytest.mark.usefixtures("database")


@pytest.mark.parametrize(
    ("hours", "said"), [(0, "Taken over at the next check, and taken then: no rule says yes."), (24, "Taken on ")]
)
async def test_a_role_that_is_taken_over_stays_for_the_grace_time(hours: int, said: str) -> None:
    async with transaction() as db:
        server, role_id = await a_server(db), snowflake()
        rule = await a_rule(db, server, role_id)
        rule.takes_over, rule.removal_mode, rule.removal_hours = True, "grace" if hours else "now", hours
        member = await a_member(db, server, roles=(role_id,))
    async with transaction() as db:
        (role,) = (await explain._of(db, member.server_id, member.discord_id, show_wallets=False)).roles
    assert role.next.startswith(said)


async def test_a_replaced_role_is_taken_after_the_new_one_is_given_and_at_no_time() -> None:
    async with transaction() as db:
        server, former = await a_server(db), snowflake()
        rule = await a_rule(db, server, former)
        member = await a_member(db, server, roles=(former,), wallet=address())
        await a_grant(db, member, rule)
        rule.role_id = snowflake()
    async with transaction() as db:
        seen = await explain._of(db, member.server_id, member.discord_id, show_wallets=False)
    (role,) = (one for one in seen.roles if one.role_id == former)
    assert role.next == "Taken once the role that its rule gives now is given."
