"""Rules far beyond the limits, stored before limits existed: other servers are not slowed, and nobody loses a role."""

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import text
from sqlmodel import col, select

from locales.stored_texts import said
from models import Grant, Rule, transaction
from models.db.session import AsyncSession
from services.core import queue
from services.core.queue import Claim
from services.engine import snapshot
from services.health import alert_conditions, backlog
from services.privacy import retention
from services.rules import limits, pausing, rule_rows
from services.rules.draft import RuleDraft
from services.rules.expression import AtLeast, Expression, Requirement, to_document
from services.rules.types.any_wallet import AnyWallet
from services.triggers import watch_list
from settings import settings
from tests.support.builders import a_server, address, snowflake
from tests.support.statements import Step, meet

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RULES_PER_SERVER", "3")
    monkeypatch.setenv("CONDITIONS_PER_SERVER", "8")
    settings.cache_clear()


async def server_with(*conditions: int) -> tuple[int, list[int]]:
    """Store a server with one rule for each number of conditions; return its id and the rules' ids, oldest first."""
    async with transaction() as db:
        server = await a_server(db)
        rules = [rule_of(server.id or 0, count) for count in conditions]
        db.add_all(rules)
        await db.flush()
        return server.id or 0, [rule.id or 0 for rule in rules]


def rule_of(server_id: int, conditions: int) -> Rule:
    leaves: Sequence[Expression] = [Requirement("basic", "base", address()) for _ in range(conditions)]
    tree = leaves[0] if conditions == 1 else AtLeast(1, tuple(leaves))
    return Rule(
        server_id=server_id, name="A rule", role_id=snowflake(), role_name="Role", verification_type="basic",
        contract_address=address(), blockchain="base", created_by="0", expression=to_document(tree),
    )  # fmt: skip


async def active(server_id: int) -> list[int]:
    async with transaction() as db:
        found = select(Rule.id).where(Rule.server_id == server_id, Rule.state == "active").order_by(col(Rule.id))
        return [number or 0 for number in (await db.exec(found)).all()]


async def asked(server_id: int) -> tuple[int, int]:
    """Return how many rules a reconcile of a member loads, and how many of the server's contracts are watched."""
    async with transaction() as db:
        rules = await snapshot.rules_for(db, [Claim(server_id, "1", 1, 0, queue.SWEPT)])
        watched = await watch_list.named(db)
    return len(rules.get(server_id, ())), sum(server_id in servers for servers in watched.get("base", {}).values())


async def test_all_but_the_oldest_rules_of_a_server_far_beyond_the_limits_are_paused() -> None:
    far, rules = await server_with(*[1] * (3 * limits.FAR_BEYOND + 1))
    beyond, _ = await server_with(*[1] * 3 * limits.FAR_BEYOND)
    within, _ = await server_with(1, 1)
    assert await asked(far) == (len(rules), len(rules))
    async with transaction() as db:
        await retention.housekeep(db)
    assert await active(far) == rules[:3]
    assert await asked(far) == (3, 3)
    assert (len(await active(beyond)), len(await active(within))) == (3 * limits.FAR_BEYOND, 2)
    async with transaction() as db:
        assert await limits.pause(db) == 0, "once is enough"


async def test_conditions_count_as_well() -> None:
    far, rules = await server_with(4, 3, 2, *[40] * 2)
    async with transaction() as db:
        assert await limits.pause(db) == 3
    assert await active(far) == rules[:2]


async def test_a_trait_with_the_name_of_a_type_is_no_condition() -> None:
    far, (rule_id,) = await server_with(1)
    leaf = Requirement("trait", "base", address(), traits=(("address_list", "x"), ("any_wallet", "y")))
    tree = AtLeast(1, (leaf, Requirement("any_wallet", "", "", details=AnyWallet())))
    async with transaction() as db:
        rule = await db.get_one(Rule, rule_id)
        rule.expression = to_document(tree)
        db.add(rule)
        await db.flush()
        assert (await limits.room(db, far)).conditions == 2


@pytest.mark.parametrize(("cause", "state"), [(pausing.TOO_MANY, "paused"), ("above_bot", "active")])
def test_a_change_resumes_a_rule_whose_cause_it_shows_to_be_gone(
    monkeypatch: pytest.MonkeyPatch, cause: str, state: str
) -> None:
    rule = rule_of(1, 1)
    rule.state, rule.pause_cause, rule.pause_reason = "paused", cause, "For a reason"

    def filled(rule: Rule, draft: RuleDraft, _: object) -> None:
        rule.name = draft.rule_name

    monkeypatch.setattr(rule_rows, "fill", filled)
    rights: Any = None
    rule_rows.apply(rule, {"ruleName": "Another name"}, rights)
    kept = (cause, "For a reason") if state == "paused" else (None, None)
    assert (rule.name, rule.state, rule.pause_cause, rule.pause_reason) == ("Another name", state, *kept)
    rule_rows.apply(rule, {"state": "active"}, rights)
    assert (rule.state, rule.pause_cause) == ("active", None), "an admin resumes it"


async def test_the_admins_are_told_why_once_and_roles_that_such_rules_gave_stay() -> None:
    far, rules = await server_with(*[1] * 16)
    async with transaction() as db:
        last = await db.get_one(Rule, rules[-1])
        db.add(Grant(server_id=far, discord_id="1", role_id=last.role_id, state="held", rule_ids=[rules[-1]]))
    async with transaction() as db:
        await limits.pause(db)
    async with transaction() as db:
        (trouble,) = (await alert_conditions.of_all(db, [far])).found
        paused = await backlog.paused_rules(db, far)
        terms = (await snapshot.rules_for(db, [Claim(far, "1", 1, 0, queue.SWEPT)]))[far]
    assert trouble.title == "Too many rules: 13 of them are paused"
    assert trouble.text.startswith("This server has far more rules than a server can have (3 rules with 8 conditions).")
    assert {(one.cause, one.reason) for one in paused} == {(pausing.TOO_MANY, said(limits.reason()))}
    # The rule is among those that decide about the role: as it is paused, the role stays as it is.
    assert [one.id for one in terms] == [*rules[:3], rules[-1]]
    assert not terms[-1].decides


async def test_no_event_of_a_role_resumes_them_but_an_admin_does() -> None:
    far, rules = await server_with(*[1] * 16)
    async with transaction() as db:
        await limits.pause(db)
        role = (await db.get_one(Rule, rules[-1])).role_id
        assert await pausing.roles_judged(db, far, resumed=[role]) == 0
    async with transaction() as db:
        await db.execute(
            text("UPDATE rule SET state = 'active', pause_cause = NULL, pause_reason = NULL WHERE id = :rule"),
            {"rule": rules[-1]},
        )
    assert await asked(far) == (4, 4)
    async with transaction() as db:
        assert await limits.pause(db) == 0


async def test_a_rule_that_gave_another_role_before_is_loaded_for_what_it_gave() -> None:
    server_id, rules = await server_with(1)
    async with transaction() as db:
        rule = await db.get_one(Rule, rules[0])
        rule.state, rule.pause_cause = "paused", pausing.TOO_MANY
        db.add(Grant(server_id=server_id, discord_id="1", role_id=snowflake(), rule_ids=rules, state="held"))
    async with transaction() as db:
        loaded = await snapshot.rules_for(db, [Claim(server_id, "1", 1, 0, queue.SWEPT)])
    assert [one.id for one in loaded[server_id]] == rules


async def test_servers_beyond_the_limits_wait_for_who_changes_their_rules_in_the_order_of_ids() -> None:
    """Discord's refusals of several servers are tried again in one transaction, which locks all of their rules."""
    first, _ = await server_with(1)
    async with transaction() as db:
        second = (await a_server(db)).id or 0
        db.add_all(older := [rule_of(second, 1) for _ in range(16)])
        await db.flush()
        db.add_all(younger := [rule_of(first, 1) for _ in range(15)])
        await db.flush()

    async def pause(db: AsyncSession) -> None:
        assert await limits.pause(db) == 26

    await meet(pause, locked(older[-1]), locked(younger[-1]))
    assert [len(await active(server_id)) for server_id in (first, second)] == [3, 3]


def locked(rule: Rule) -> Step:
    return lambda db: db.exec(select(Rule.id).where(Rule.id == rule.id).with_for_update())
