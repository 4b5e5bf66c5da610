"""Posts in the log channel: alerts that begin or end together are one, and none is lost or told twice."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from sqlmodel import update

from gateways import Gateways
from gateways.transport.errors import ProviderDown
from models import Alert, Rule, now, transaction
from services.health import alerts
from services.rules import pausing
from tests.services.health.test_alerts import ABOVE, a_logging_server, tell_all, to_tell
from tests.support.builders import a_rule, snowflake

pytestmark = pytest.mark.usefixtures("database")


class Channel:
    """A log channel that a test reads; with `lost`, its confirmations do not arrive."""

    def __init__(self) -> None:
        self.posts: list[dict[str, Any]] = []
        self.nonces = set[str]()
        self.lost = False
        self.outside = cast("Gateways", SimpleNamespace(discord=self))

    async def post_message(self, channel_id: str, body: dict[str, Any], nonce: str) -> None:
        assert len(nonce) <= 25
        if nonce not in self.nonces:
            self.posts.append(body["embeds"][0])
        self.nonces.add(nonce)
        if self.lost:
            raise ProviderDown("Discord", "no answer")

    async def recent_messages(self, channel_id: str) -> list[Any]:
        return [SimpleNamespace(embeds=[one]) for one in self.posts]

    async def hears(self) -> list[dict[str, Any]]:
        """Let what is due be posted, and return the new posts."""
        before = len(self.posts)
        for together in alerts.in_posts(await to_tell()):
            fault = await alerts.post(self.outside, together)
            async with transaction() as db:
                for alert in together:
                    await alerts.record_result(db, alert, fault)
        return self.posts[before:]


async def with_rules(count: int) -> tuple[int, list[Rule]]:
    """Make a server with a log channel and so many rules, each for a role of its own."""
    server, rule = await a_logging_server()
    async with transaction() as db:
        rules = [rule, *[await a_rule(db, server, snowflake()) for _ in range(count - 1)]]
    return server.id or 0, rules


async def test_one_loss_that_pauses_many_rules_is_one_post_and_so_is_its_end() -> None:
    server_id, rules = await with_rules(12)
    async with transaction() as db:
        for rule in rules:
            await pausing.pause_role(db, server_id, rule.role_id, ABOVE, "manage_roles")
    channel = Channel()
    (begun,) = await channel.hears()
    assert begun["title"] == "12 problems"
    assert begun["description"].count("• The bot lacks Manage Roles: the rule A rule is paused") == 12
    assert begun["description"].count("Until then the rule neither gives nor takes") == 1
    assert begun["description"].count("**What to do:** Give the bot's role Manage Roles") == 1
    async with transaction() as db:
        for rule in rules[:5]:
            await pausing.roles_judged(db, server_id, resumed=[rule.role_id])
    (ended,) = await channel.hears()
    assert ended["title"] == "Fixed: 5 problems"
    assert ended["description"].count("• The bot lacks Manage Roles") == 5
    async with transaction() as db:
        await pausing.roles_judged(db, server_id, resumed=[rules[5].role_id])
    (last,) = await channel.hears()
    assert (last["title"], last["description"]) == (
        "Fixed: The bot lacks Manage Roles: the rule A rule is paused", "This problem is over.",
    )  # fmt: skip


async def test_problems_of_one_remedy_say_each_what_they_are_and_fit_into_one_post() -> None:
    server_id, rules = await with_rules(50)
    async with transaction() as db:
        for number, rule in reversed(list(enumerate(rules))):
            reason = ABOVE.replace("Role", f"Role{number:02}" + "*" * 90)
            await pausing.pause_role(db, server_id, rule.role_id, reason, "above_bot")
    (begun,) = await Channel().hears()
    assert begun["title"] == "50 problems"
    *told, rest, _, mend = begun["description"].split("\n")
    assert [f"Role{number:02}\\*" in one for number, one in enumerate(told)] == [True] * len(told)
    assert rest == f"• {50 - len(told)} more"
    assert mend.startswith("**What to do:** Move the bot's role above it")
    assert len(begun["description"]) <= 4096


async def test_a_post_whose_confirmation_was_lost_is_not_repeated_for_any_of_its_problems() -> None:
    server_id, rules = await with_rules(3)
    async with transaction() as db:
        for rule in rules:
            await pausing.pause_role(db, server_id, rule.role_id, ABOVE, "above_bot")
    channel = Channel()
    channel.lost = True
    assert len(await channel.hears()) == 1
    channel.lost = False
    async with transaction() as db:
        await db.exec(update(Alert).values(next_at=now()))
        await pausing.roles_judged(db, server_id, resumed=[rules[0].role_id])
    assert await channel.hears() == []
    assert await tell_all() == []


async def test_a_problem_that_begins_after_a_process_ended_in_a_post_is_told_and_no_other_again() -> None:
    """The process posted, and ended before it could record that."""
    server_id, rules = await with_rules(4)
    async with transaction() as db:
        for rule in rules[:3]:
            await pausing.pause_role(db, server_id, rule.role_id, ABOVE, "above_bot")
    channel = Channel()
    (together,) = alerts.in_posts(await to_tell())
    assert await alerts.post(channel.outside, together) is None
    async with transaction() as db:
        await pausing.pause_role(db, server_id, rules[3].role_id, ABOVE, "above_bot")
        await db.exec(update(Alert).values(next_at=now()))
    (later,) = await channel.hears()
    assert later["title"] == "Role order broken: the rule A rule is paused"
    assert await tell_all() == []


async def test_a_post_that_arrives_late_does_not_pass_for_one_with_a_further_problem() -> None:
    """Discord shows the first post only after the channel was searched, and knows its nonce."""
    server_id, rules = await with_rules(2)
    channel, told = Channel(), list[list[str]]()
    for rule in rules:
        async with transaction() as db:
            await pausing.pause_role(db, server_id, rule.role_id, ABOVE, "above_bot")
            await db.exec(update(Alert).values(next_at=now()))
        channel.lost = rule is rules[0]
        told.append([one["title"] for one in await channel.hears()])
        channel.posts.clear()
    assert told == [["Role order broken: the rule A rule is paused"], ["2 problems"]]
