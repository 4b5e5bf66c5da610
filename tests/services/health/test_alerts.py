"""Alerts in the log channel: one when a problem begins and one when it ends, none twice and none for a hiccup."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sqlalchemy import func
from sqlalchemy import text as sql
from sqlmodel import col, delete, select, update

from gateways import Gateways
from gateways.discord.types import MissingAccess
from gateways.evm.transfer_logs import CONTRACTS
from gateways.transport.errors import ProviderDown
from gateways.transport.provider_reports import ProviderReport
from models import Alert, AsyncSession, Breaker, ProviderState, RoleRefusal, Rule, Server, now, transaction
from services.guilds import members_intent
from services.guilds.role_safety import MANAGE_ROLES
from services.health import alert_conditions, alerts, provider_records
from services.health.alert_conditions import Trouble
from services.health.alerts import AlertMessage
from services.health.server_health import NEEDED
from services.roles.rival_reports import Rival
from services.rules import pausing
from services.rules.expression import Requirement, to_document
from services.triggers import quarantine
from tests.support.builders import CONTRACT, a_rule, a_server, snowflake

pytestmark = pytest.mark.usefixtures("database")


ABOVE = "Role is above the bot's own role. Move the bot's role above it in Server Settings › Roles."


async def a_logging_server() -> tuple[Server, Rule]:
    async with transaction() as db:
        server = await a_server(db)
        server.log_channel_id = snowflake()
        db.add(server)
        rule = await a_rule(db, server, snowflake())
    return server, rule


async def to_tell() -> list[AlertMessage]:
    async with transaction() as db:
        await alerts.record_begun_and_ended(db)
        return await alerts.claim(db)


async def tell_all() -> list[tuple[str, bool]]:
    """Send the alerts that are due, and return their titles, each with whether it says that the problem is over."""
    found = await to_tell()
    for telling in found:
        async with transaction() as db:
            await alerts.record_result(db, telling, None)
    return [(telling.title, telling.over) for telling in found]


async def test_a_paused_rule_is_told_once_and_its_return_once() -> None:
    server, rule = await a_logging_server()
    assert await tell_all() == []
    async with transaction() as db:
        await pausing.pause_role(db, server.id or 0, rule.role_id, "It stands above the bot.", "above_bot")
    title = "Role order broken: the rule A rule is paused"
    assert await tell_all() == [(title, False)]
    assert await tell_all() == []
    async with transaction() as db:
        await pausing.roles_judged(db, server.id or 0, resumed=[rule.role_id])
    assert await tell_all() == [(title, True)]
    assert await tell_all() == []


async def test_a_lost_permission_is_told_once_and_not_again_for_each_rule_that_it_pauses() -> None:
    server, rule = await a_logging_server()
    server_id, everything = server.id or 0, sum(bit for bit, _ in NEEDED.values())
    for bits, pauses in ((everything & ~MANAGE_ROLES, True), (everything, False)):
        async with transaction() as db:
            (await db.get_one(Server, server_id)).bot_permissions = bits
            if pauses:
                await pausing.pause_role(db, server_id, rule.role_id, "The bot may not.", "manage_roles")
            else:
                await pausing.roles_judged(db, server_id, resumed=[rule.role_id])
        assert await tell_all() == [("The bot lacks permissions", not pauses)]
        assert await tell_all() == []


async def test_a_rule_whose_lost_permission_is_known_only_to_the_rule_is_told() -> None:
    server, rule = await a_logging_server()
    async with transaction() as db:
        await pausing.pause_role(db, server.id or 0, rule.role_id, "The bot may not.", "manage_roles")
    title = "The bot lacks Manage Roles: the rule A rule is paused"
    assert await tell_all() == [(title, False)]
    async with transaction() as db:
        (await db.get_one(Server, server.id or 0)).bot_permissions = 0
    assert [over for _, over in await tell_all()] == [False], "the rule is still paused"
    async with transaction() as db:
        await pausing.roles_judged(db, server.id or 0, resumed=[rule.role_id])
    assert await tell_all() == [(title, True)]


async def test_each_server_is_told_in_its_own_language() -> None:
    told: list[dict[str, Any]] = []

    async def post(channel_id: str, body: dict[str, Any], nonce: str) -> None:
        told.append(body["embeds"][0])

    outside = cast("Gateways", SimpleNamespace(discord=SimpleNamespace(post_message=post)))
    for language in ("ja", "en", "es"):
        server, rule = await a_logging_server()
        async with transaction() as db:
            (await db.get_one(Server, server.id)).language = language
            await pausing.pause_role(db, server.id or 0, rule.role_id, ABOVE, "above_bot")
    for together in alerts.in_posts(await to_tell()):
        assert await alerts.post(outside, together) is None
    texts = {one["title"]: one["description"] for one in told}
    assert texts.keys() == {
        "ロールの順序の問題：ルールA ruleは一時停止中です",
        "Role order broken: the rule A rule is paused",
        "Orden de roles incorrecto: la regla A rule está en pausa",
    }
    assert "**What to do:** Move the bot's role above it" in texts["Role order broken: the rule A rule is paused"]
    assert texts["Orden de roles incorrecto: la regla A rule está en pausa"].startswith("Role está por encima del rol")
    assert "**Qué hacer:** Mueve el rol" in texts["Orden de roles incorrecto: la regla A rule está en pausa"]


async def test_no_name_is_a_link_in_an_alert() -> None:
    told: list[dict[str, Any]] = []

    async def post(channel_id: str, body: dict[str, Any], nonce: str) -> None:
        told.append(body["embeds"][0])

    outside = cast("Gateways", SimpleNamespace(discord=SimpleNamespace(post_message=post)))
    name = "[Claim](https://phish.example) **now**"
    rival = Rival(
        1, "2", name, "3", name, bot=True, reason="", took=1, gave=0, against=True, searching=False, first_at=now(),
        last_at=now(), times=(now(),),
    )  # fmt: skip
    alert = AlertMessage(1, "4", rival.title, rival.text, rival.mend, False, 0, "en")
    assert await alerts.post(outside, [alert]) is None
    for text in (told[0]["title"], told[0]["description"]):
        assert "](" not in text.replace("\\]", "")
        assert "https://" not in text
        assert "\\*\\*now" in text


async def test_a_refused_role_that_is_tried_again_is_not_told_as_fixed_before_discord_accepts_it() -> None:
    server, rule = await a_logging_server()
    server_id, reason, title = server.id or 0, "Discord refused.", "Discord refused a role: the rule A rule is paused"
    async with transaction() as db:
        await pausing.refused(db, server_id, rule.role_id, reason)
    assert await tell_all() == [(title, False)]
    for _ in range(2):
        async with transaction() as db:
            await db.exec(update(RoleRefusal).values(next_at=now()))
            assert await pausing.retry_refused(db) == 1
        assert await tell_all() == [], "it is tried again, and nobody knows yet what Discord says"
        async with transaction() as db:
            await pausing.refused(db, server_id, rule.role_id, reason)
        assert await tell_all() == []
    async with transaction() as db:
        await pausing.accepted(db, server_id, rule.role_id)
    assert await tell_all() == [(title, True)]


async def test_a_refused_role_that_nobody_gets_any_more_is_told_as_fixed_after_a_while() -> None:
    server, rule = await a_logging_server()
    async with transaction() as db:
        await pausing.refused(db, server.id or 0, rule.role_id, "Discord refused.")
    assert len(await tell_all()) == 1
    async with transaction() as db:
        await db.exec(update(RoleRefusal).values(next_at=now() - timedelta(minutes=11)))
        assert await pausing.retry_refused(db) == 1
    assert await tell_all() == [("Discord refused a role: the rule A rule is paused", True)]


async def test_a_rule_that_an_admin_paused_is_no_trouble_and_without_a_channel_nobody_is_told() -> None:
    server, rule = await a_logging_server()
    async with transaction() as db:
        await db.exec(update(Rule).values(state="paused", pause_reason="Paused by an admin"))
    assert await tell_all() == []
    async with transaction() as db:
        await db.exec(update(Rule).values(state="active"))
        await db.exec(update(Server).values(log_channel_id=None))
        await pausing.pause_role(db, server.id or 0, rule.role_id, "Gone.", "role_gone")
    assert await tell_all() == []


async def test_a_stopped_removal_and_lacking_permissions_are_told() -> None:
    server, rule = await a_logging_server()
    async with transaction() as db:
        db.add(Breaker(server_id=server.id or 0, role_id=rule.role_id, would_lose=7, holders=9))
        await db.exec(update(Server).values(bot_permissions=1 << 28))
    assert sorted(await tell_all()) == [("Removals of Role were stopped", False), ("The bot lacks permissions", False)]
    async with transaction() as db:
        await db.exec(update(Server).values(bot_permissions=8))
    assert await tell_all() == [("The bot lacks permissions", True)]


async def test_a_node_is_reported_after_a_while_and_only_where_a_rule_asks_its_chain() -> None:
    await a_logging_server()
    async with transaction() as db:
        await provider_records.keep(
            db, [ProviderReport("base:0", "down", now()), ProviderReport("base:1", "ok", now() - timedelta(minutes=9))]
        )
        await provider_records.keep(db, [ProviderReport("polygon:0", "down", now() - timedelta(minutes=9))])
    assert await tell_all() == []
    async with transaction() as db:
        await db.exec(update(ProviderState).values(since=now() - timedelta(minutes=2)))
    (told,) = await to_tell()
    assert told.title == "Base node 1 does not answer as it should"
    assert "Removals on Base are paused" in told.text
    async with transaction() as db:
        await alerts.record_result(db, told, None)
        await db.exec(update(ProviderState).values(state="ok", since=now()))
    assert await tell_all() == []
    async with transaction() as db:
        await db.exec(update(ProviderState).values(since=now() - timedelta(minutes=2)))
    assert await tell_all() == [(told.title, True)]


async def test_a_node_that_was_taken_out_of_the_settings_is_no_problem_and_helps_no_other() -> None:
    """Its last report stays in the database: an alert about it would never end."""
    await a_logging_server()
    long_ago = now() - timedelta(days=3)
    async with transaction() as db:
        reports = {"base:0": "ok", "base:1": "ok", "base:2": "down", "base:3": "ok"}
        await provider_records.keep(db, [ProviderReport(name, state, long_ago) for name, state in reports.items()])
    assert await tell_all() == []
    async with transaction() as db:
        await db.exec(update(ProviderState).where(col(ProviderState.provider) == "base:0").values(state="down"))
    (told,) = await to_tell()
    assert told.title == "Base node 1 does not answer as it should"
    assert "Removals on Base are paused" in told.text


@pytest.mark.parametrize(
    ("fault", "least"),
    [(MissingAccess("Discord", "no", status=403, code=50001), 599), (ProviderDown("Discord", "no answer"), 4)],
)
async def test_what_could_not_be_posted_is_tried_later_and_a_refusal_much_later(fault: Exception, least: int) -> None:
    server, rule = await a_logging_server()
    async with transaction() as db:
        await pausing.pause_role(db, server.id or 0, rule.role_id, "Gone.", "role_gone")
    (telling,) = await to_tell()
    assert await to_tell() == []
    async with transaction() as db:
        await alerts.record_result(db, telling, fault)  # pyright: ignore[reportArgumentType]
        row = (await db.exec(select(Alert))).one()
    assert (row.attempts, row.told_at, row.last_error) == (1, None, str(fault))
    assert (row.next_at - now()).total_seconds() > least - 1


async def test_a_trouble_that_passed_before_anybody_was_told_is_never_told() -> None:
    server, rule = await a_logging_server()
    async with transaction() as db:
        await pausing.pause_role(db, server.id or 0, rule.role_id, "Gone.", "role_gone")
        await alerts.record_begun_and_ended(db)
        await pausing.roles_judged(db, server.id or 0, resumed=[rule.role_id])
    assert await tell_all() == []


async def test_an_error_about_one_server_or_in_one_condition_hides_no_other_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (bad, broken), (_, other) = await a_logging_server(), await a_logging_server()
    say, over = alert_conditions._paused_rule, set[int]()

    def paused(server_id: int, row: tuple[Rule, int | None]) -> Trouble:
        if server_id in over:
            raise ValueError("unreadable")
        return say(server_id, row)

    monkeypatch.setattr(alert_conditions, "_paused_rule", paused)
    over.add(bad.id or 0)
    async with transaction() as db:
        for rule in (broken, other):
            await pausing.pause_role(db, rule.server_id, rule.role_id, "Gone.", "role_gone")
    assert [one.channel_id != bad.log_channel_id for one in await to_tell()] == [True]
    over.clear()
    assert [title for title, _over in await tell_all()] == ["A role was deleted: the rule A rule is paused"]
    over.add(bad.id or 0)
    assert await tell_all() == [], "what could not be read is not over"

    async def failing(*_: object) -> list[Trouble]:
        raise ValueError("unreadable")

    monkeypatch.setattr(alert_conditions, "_paused", failing)
    async with transaction() as db:
        (await db.get_one(Server, bad.id)).bot_permissions = 0
    assert [title for title, _over in await tell_all()] == ["The bot lacks permissions"]


async def test_a_contract_in_quarantine_is_told_to_the_servers_that_name_it_until_it_is_followed_again() -> None:
    server, _ = await a_logging_server()
    other, rule = await a_logging_server()
    async with transaction() as db:
        changed = await db.get_one(Rule, rule.id)
        changed.expression = to_document(Requirement("basic", "polygon", CONTRACT))
        db.add(changed)
        await quarantine.begin(db, "base", CONTRACTS, {CONTRACT: "too large"})
    async with transaction() as db:
        await alerts.record_begun_and_ended(db)
        (telling,) = await alerts.claim(db)
        assert telling.channel_id == server.log_channel_id != other.log_channel_id
        await alerts.record_result(db, telling, None)
    title = "0xc0c0...c0c0 on Base is not followed for a while"
    assert telling.title == title
    async with transaction() as db:
        await quarantine.end(db, "base", CONTRACTS, [CONTRACT])
    assert await tell_all() == [(title, True)]


async def members(count: int) -> list[tuple[str, bool]]:
    async with transaction() as db:
        await db.exec(update(Server).values(member_count=count))
    return await tell_all()


async def test_a_review_of_the_members_intent_is_told_early_once_and_only_where_few_servers_are_served() -> None:
    title = "Discord reviews the Server Members Intent soon"
    await a_logging_server()
    assert await members(7_999) == []
    assert await members(8_000) == [(title, False)]
    assert await members(7_999) == [], "somebody left: the review is as near as it was"
    assert await members(7_499) == [(title, True)]
    assert await members(8_000) == [(title, False)]
    async with transaction() as db:
        await provider_records.keep(db, [provider_records.bot_is(connected=True, reason=members_intent.NOT_ASKED)])
    assert await tell_all() == [(title, True)], "without the intent there is nothing to review"
    async with transaction() as db:
        await db.exec(delete(ProviderState))
        for _ in range(members_intent.MOST_SERVERS):
            await a_server(db)
    assert await members(1_000) == []


async def test_a_node_that_fails_many_servers_begins_and_ends_an_alert_for_each() -> None:
    count = 8_200  # one statement takes 65,535 parameters, and an alert has eight columns
    server, rule = await a_logging_server()
    moment = now() - timedelta(minutes=9)
    async with transaction() as db:
        await _copy(db, "server", server.id or 0, count - 1, "discord_id")
        await _copy(db, "rule", rule.id or 0, count - 1, "server_id")
        await provider_records.keep(db, [ProviderReport("base:0", "down", moment)])
        await db.exec(update(ProviderState).values(since=moment))
        await alerts.record_begun_and_ended(db)
        begun = await db.exec(select(func.count(), func.count(col(Alert.ended_at))).select_from(Alert))
        assert begun.one() == (count, 0)
        await db.exec(update(ProviderState).values(state="ok"))
        await alerts.record_begun_and_ended(db)
        ended = await db.exec(select(func.count(), func.count(col(Alert.ended_at))).select_from(Alert))
        assert ended.one() == (count, count)


async def _copy(db: AsyncSession, table: str, row_id: int, copies: int, counted: str) -> None:
    """Copy a row, with numbers that go on from its own as ids and in the column `counted`."""
    await db.execute(
        sql(
            f"INSERT INTO {table} SELECT (jsonb_populate_record(t, jsonb_build_object("
            f"'id', t.id + n, '{counted}', (CAST(t.{counted} AS bigint) + n)::text))).* "
            f"FROM {table} t, generate_series(1, :copies) n WHERE t.id = :id"
        ),
        {"copies": copies, "id": row_id},
    )
