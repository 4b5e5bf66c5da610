"""How a role moves: from a proof to the role, from a sale to its end, and through every fault in between."""

import asyncio
import logging
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlmodel import col, select

from gateways import gateways
from gateways.transport.errors import NotYet, ProviderDown
from jobs.reconciler import Reconciler
from models import Due, Event, Grant, Rule, User, now, transaction
from services.core import request_ids
from services.core.actors import Actor
from services.privacy import erasure
from services.roles import breaker, outbox, results
from services.runtime.logs import redact_every_log
from services.servers import activity, explain, undo
from services.servers import breaker_review as held_back
from services.servers.activity import LogFilter
from tests.jobs.conftest import Engine
from tests.jobs.town import Town, until
from tests.support.builders import open_intents

BOTH = ("rpc:base", "rpc2:base")


async def grants(town: Town) -> list[Grant]:
    async with transaction() as db:
        return list((await db.exec(select(Grant).where(Grant.server_id == town.server_id))).all())


async def kinds(town: Town) -> list[str]:
    async with transaction() as db:
        rows = await db.exec(select(Event.kind).where(Event.server_id == town.server_id).order_by(col(Event.id)))
        return list(rows.all())


async def rule(rule_id: int) -> Rule | None:
    async with transaction() as db:
        return await db.get(Rule, rule_id)


async def given(town: Town, who: str = "carol", role: str = "Holder") -> None:
    await until(lambda: town.has(who, role))

    async def held() -> bool:
        return any(row.state == "held" and row.discord_id == town.people[who]["id"] for row in await grants(town))

    await until(held)


async def taken(town: Town, who: str = "carol", role: str = "Holder") -> None:
    async def gone() -> bool:
        return not await town.has(who, role)

    await until(gone)


async def looked_at(town: Town) -> None:
    """Everybody of the town was looked at, by us or by the engine if it runs."""
    await town.look()
    looker = Reconciler(asyncio.Event())

    async def nobody_waits() -> bool:
        await looker.once()
        return await nobody_is_due(town)

    await until(nobody_waits)


async def nobody_is_due(town: Town) -> bool:
    """Return whether nobody of the town waits to be looked at."""
    async with transaction() as db:
        mine = col(Due.key).startswith(f"{town.server_id}:")
        return (await db.exec(select(Due).where(mine, col(Due.due_at) <= now()))).first() is None


async def test_a_proof_gives_the_role_and_a_sale_takes_it(town: Town, engine: Engine) -> None:
    token = await town.buys("carol")
    await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
        await town.sells(token)
        await town.look()
        await taken(town)
        await until(lambda: _empty(town))
    assert [kind for kind in await kinds(town) if kind.startswith("role.")] == ["role.given", "role.taken"]


async def _empty(town: Town) -> bool:
    return not await grants(town)


async def test_a_round_over_right_members_writes_nothing(town: Town, engine: Engine) -> None:
    await town.buys("carol")
    await town.rule("Holder")
    await town.rule("Holder", least=5)
    async with engine():
        await town.prove("carol")
        await town.prove("dave")
        await given(town)
        start = await town.mark()
        for _ in range(3):
            await looked_at(town)
    assert await town.writes(start) == []
    assert [row.state for row in await grants(town)] == ["held"]


@pytest.mark.parametrize("kind", ["down", "429", "500", "empty", "zero", "malformed", "stale"])
async def test_a_fault_of_both_nodes_takes_nothing_and_a_sale_is_acted_on_once_it_heals(
    town: Town, engine: Engine, kind: str
) -> None:
    token = await town.buys("carol")
    await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
    start = await town.mark()
    await town.break_(kind, *BOTH)
    await looked_at(town)
    assert await town.requests(start, "rpc:base")
    assert [row.state for row in await grants(town)] == ["held"]
    await town.sells(token)
    await looked_at(town)
    assert [row.state for row in await grants(town)] == ["held"]
    assert await town.writes(start) == []
    await town.heal()
    async with engine():
        await town.look()
        await taken(town)


async def test_one_node_that_says_zero_can_take_nothing_alone(town: Town, engine: Engine) -> None:
    token = await town.buys("carol")
    await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
    await town.break_("zero", "rpc:base")
    await looked_at(town)
    await town.sells(token)
    await looked_at(town)
    assert [row.state for row in await grants(town)] == ["held"], "the second node's word was not confirmed"
    await town.heal()
    async with engine():
        await town.look()
        await taken(town)


async def test_what_was_sent_before_a_crash_is_not_sent_again(town: Town, engine: Engine) -> None:
    await town.buys("carol")
    await town.rule("Holder")
    await town.prove("carol")
    start = await town.mark()
    await looked_at(town)
    async with transaction() as db:
        (intent,) = await open_intents(db, 10, ())
    # The request goes out, and the process ends before it can write down what came of it.
    await outbox.carry_out(gateways(), intent, sure=True)
    async with engine():
        await given(town)
    assert await town.writes(start) == ["PUT"]


async def test_a_role_that_has_to_wait_for_the_limit_is_not_read_back(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await town.buys("carol")
    await town.rule("Holder")
    gives, held_back = gateways().discord.add_role, list[str]()

    async def used_up_at_first(guild: str, user: str, role: str, reason: str) -> None:
        if len(held_back) < 2:
            held_back.append(guild)
            raise NotYet("Discord", "its rate limit is used up", retry_after=0.2)
        await gives(guild, user, role, reason)

    monkeypatch.setattr(gateways().discord, "add_role", used_up_at_first)
    async with engine():
        # What is intended before the writer has its lease is read first in any case.
        await until(_writer_has_its_lease)
        start = await town.mark()
        await town.prove("carol")
        await given(town)
    assert len(held_back) == 2
    assert [row.attempts for row in await grants(town)] == [0]
    member = f"/members/{town.people['carol']['id']}"
    asked = [one for one in await town.requests(start, "discord") if one["path"].endswith(member)]
    assert asked == [], "it was never sent, so nobody has to look whether it happened"


async def _writer_has_its_lease() -> bool:
    async with transaction() as db:
        mine = "database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        question = f"SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND {mine})"
        return bool((await db.execute(text(question))).scalar_one())


async def test_a_removal_that_was_sent_before_a_crash_is_not_sent_again(town: Town, engine: Engine) -> None:
    token = await town.buys("carol")
    await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
    start = await town.mark()
    await town.sells(token)
    await looked_at(town)
    async with transaction() as db:
        (intent,) = await open_intents(db, 10, ())
    await outbox.carry_out(gateways(), intent, sure=True)
    async with engine():
        await until(lambda: _empty(town))
    assert await town.writes(start) == ["DELETE"]


async def test_a_removal_that_nobody_answered_is_waited_for_before_the_role_is_given_back(
    town: Town, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = await town.buys("carol")
    await town.rule("Holder")
    await town.prove("carol")
    async with engine():
        await given(town)

    async def unheard(*_: object) -> None:
        raise ProviderDown("Discord", "no answer (ReadTimeout)")

    monkeypatch.setattr(gateways().discord, "remove_role", unheard)
    await town.sells(token)
    await looked_at(town)
    async with transaction() as db:
        (intent,) = await open_intents(db, 10, set())
    outcome = await outbox.carry_out(gateways(), intent, sure=True)
    async with transaction() as db:
        await results.record(db, intent, outcome)
    await town.buys("carol")
    await looked_at(town)
    async with engine():
        assert [row.state for row in await grants(town)] == ["giving"], "it is right again, but not sent yet"
        async with transaction() as db:
            assert await open_intents(db, 10, set()) == []
        carol = {"guild": town.name, "user": town.people["carol"]["id"], "role": await town.role("Holder")}
        await town.call("members", action="remove_role", **carol)  # Discord does now what it was asked long ago
        async with transaction() as db:
            await db.execute(text("UPDATE unanswered SET at = at - interval '2 minutes'"))
        await given(town)
    assert "role.lost" not in await kinds(town)


async def test_a_removal_that_could_not_be_sent_for_long_is_decided_anew(town: Town, engine: Engine) -> None:
    token = await town.buys("carol")
    await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
    await town.sells(token)
    await looked_at(town)
    async with transaction() as db:
        row = (await db.exec(select(Grant).where(Grant.server_id == town.server_id))).one()
        assert row.state == "taking"
        row.intended_at = now() - 2 * outbox.STALE_AFTER
        db.add(row)
    await town.buys("carol")
    start = await town.mark()
    async with engine():
        await given(town)
    assert await town.writes(start) == []


async def test_a_write_that_fails_is_tried_again_and_not_taken_for_done(town: Town, engine: Engine) -> None:
    await town.buys("carol")
    await town.rule("Holder")
    await town.prove("carol")
    await looked_at(town)
    await town.break_("500", "discord")
    async with engine():

        async def tried() -> bool:
            return any(row.attempts > 0 for row in await grants(town))

        await until(tried, 40)
        assert [row.state for row in await grants(town)] == ["giving"]
        assert not await town.has("carol", "Holder")
        await town.heal()
        await given(town)


async def test_a_role_above_the_bot_pauses_its_rules_with_the_reason(town: Town, engine: Engine) -> None:
    await town.buys("carol")
    rule_id = await town.rule("Founder")
    start = await town.mark()
    async with engine():
        await town.prove("carol")

        async def paused() -> bool:
            found = await rule(rule_id)
            return found is not None and found.state == "paused"

        await until(paused)
        await looked_at(town)
    found = await rule(rule_id)
    assert found is not None
    assert found.pause_reason
    assert [row.state for row in await grants(town)] == ["giving"]
    assert len(await town.writes(start)) == 1, "a refused request is not made again"


@pytest.mark.parametrize("danger", ["8", "2"])
async def test_a_role_that_becomes_dangerous_pauses_its_rules(town: Town, danger: str) -> None:
    rule_id = await town.rule("Holder")
    await town.call("guilds", guild=town.name, action="edit_role", role="Holder", permissions=danger)
    await town.see()
    found = await rule(rule_id)
    assert found is not None
    assert found.state == "paused"
    assert "permission" in (found.pause_reason or "")


async def test_a_deleted_rule_takes_its_roles_first_and_then_goes(town: Town, engine: Engine) -> None:
    await town.buys("carol")
    rule_id = await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
        await town.change(rule_id, deleted_at=now())
        await taken(town)

        async def gone() -> bool:
            return await rule(rule_id) is None

        await until(gone)


async def test_a_paused_rule_keeps_what_it_gave(town: Town, engine: Engine) -> None:
    token = await town.buys("carol")
    rule_id = await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
        await town.change(rule_id, state="paused")
        await town.sells(token)
        await looked_at(town)
        assert [row.state for row in await grants(town)] == ["held"]
        await town.change(rule_id, state="active")
        await taken(town)


async def test_a_role_that_somebody_else_took_is_told_and_not_fought_over(town: Town, engine: Engine) -> None:
    await town.buys("carol")
    await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
        start = await town.mark()
        await town.call(
            "members", guild=town.name, user=town.people["carol"]["id"], action="remove_role", role="Holder"
        )
        await town.see()
        await looked_at(town)
    assert [row.state for row in await grants(town)] == ["lost"]
    assert "role.lost" in await kinds(town)
    assert await town.writes(start) == []
    async with engine():
        await town.rule("Holder")
        await given(town)
    assert await town.writes(start) == ["PUT"], "an admin asked for it by a new rule"


async def test_a_role_that_we_did_not_give_is_never_taken(town: Town, engine: Engine) -> None:
    await town.call("members", guild=town.name, user=town.people["carol"]["id"], action="add_role", role="Holder")
    await town.see()
    token = await town.buys("carol")
    await town.rule("Holder")
    start = await town.mark()
    async with engine():
        await town.prove("carol")
        await looked_at(town)
        await town.sells(token)
        await looked_at(town)
    assert await town.writes(start) == []
    assert await town.has("carol", "Holder")


async def test_who_left_is_no_error_and_gets_the_role_back_on_return(town: Town, engine: Engine) -> None:
    await town.buys("carol")
    await town.rule("Holder")
    await town.prove("carol")
    await looked_at(town)
    await town.call("members", guild=town.name, user=town.people["carol"]["id"], action="leave")
    async with engine():
        await until(lambda: _empty(town))
        await town.call("members", guild=town.name, user=town.people["carol"]["id"], action="join")
        await town.see()
        await town.look()
        await given(town)


async def test_who_left_and_came_back_unheard_gets_the_role_again(town: Town, engine: Engine) -> None:
    """The bot was away meanwhile: nobody took the role, Discord dropped it with the membership."""
    await town.buys("carol")
    await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
        for action in ("leave", "join"):
            await town.call("members", guild=town.name, user=town.people["carol"]["id"], action=action)
        assert not await town.has("carol", "Holder")
        await town.see()
        await looked_at(town)
        await given(town)
    assert "role.lost" not in await kinds(town)


async def test_who_is_left_out_of_a_list_is_asked_for_by_name_and_loses_nothing(town: Town, engine: Engine) -> None:
    token = await town.buys("carol")
    await town.rule("Holder")
    await town.prove("carol")
    async with engine():
        await given(town)
        await town.see(without="carol")
        await looked_at(town)
        await given(town)
        assert "role.lost" not in await kinds(town)
        await town.sells(token)
        await looked_at(town)
        await taken(town)


async def test_who_left_while_nobody_listened_is_let_go_of_once_discord_says_so(town: Town, engine: Engine) -> None:
    await town.buys("carol")
    await town.rule("Holder")
    await town.prove("carol")
    async with engine():
        await given(town)
        await town.call("members", guild=town.name, user=town.people["carol"]["id"], action="leave")
        await town.see()
        await until(lambda: _empty(town))
    assert "member.left" in await kinds(town)


async def test_who_came_while_nobody_listened_is_looked_at_as_soon_as_they_are_seen(town: Town, engine: Engine) -> None:
    carol = {"guild": town.name, "user": town.people["carol"]["id"]}
    await town.call("members", **carol, action="leave")
    await town.see()
    await town.buys("carol")
    await town.prove("carol")
    async with engine():
        await town.rule("Holder")
        await looked_at(town)
        await town.call("members", **carol, action="join")
        await town.see()
        await given(town)


async def test_who_is_still_being_screened_waits_for_the_role(town: Town, engine: Engine) -> None:
    carol = {"guild": town.name, "user": town.people["carol"]["id"]}
    await town.call("members", **carol, action="set_pending", pending=True)
    await town.see()
    for who in ("carol", "dave"):
        await town.buys(who)
        await town.prove(who)
    mark = await town.mark()
    async with engine():
        await town.rule("Holder")
        await given(town, "dave")
        assert {row.state for row in await grants(town)} == {"giving", "held"}
        assert await town.writes(mark) == ["PUT"]
        await town.call("members", **carol, action="set_pending", pending=False)
        await town.see()
        await given(town, "carol")
    assert await town.writes(mark) == ["PUT", "PUT"]


async def test_a_grace_time_is_waited_for(town: Town, engine: Engine) -> None:
    token = await town.buys("carol")
    await town.rule("Holder", removal_mode="grace", removal_hours=1)
    async with engine():
        await town.prove("carol")
        await given(town)
        await town.sells(token)
        await looked_at(town)
        (row,) = await grants(town)
        assert row.state == "held"
        assert row.no_since is not None
        async with transaction() as db:
            row.no_since -= 2 * (now() - row.no_since) + outbox.STALE_AFTER * 60
            await db.merge(row)
        await town.look()
        await taken(town)


async def names_without_a_rule(town: Town) -> list[str]:
    """How a role is called in a member's why, in what forgetting would do, and in the log, once its rules are gone."""
    async with transaction() as db:
        user = (await db.exec(select(User).where(User.discord_id == town.people["carol"]["id"]))).one()
        carol = Actor(user_id=user.id or 0, discord_id=user.discord_id, username=user.username)
        await db.execute(text("DELETE FROM rule WHERE server_id = :server"), {"server": town.server_id})
        role_id = (await grants(town))[0].role_id
        nameless = {"roleName": "", "gift": True}
        db.add(Event(kind="role.given", server_id=town.server_id, role_id=role_id, data=nameless))
        await db.flush()
        (why,) = (await explain.own(db, carol, town.server_id)).roles
        (end,) = await erasure.consequences(db, carol)
        line = (await activity.lines(db, town.server_id, LogFilter(kind="role.given")))[0]
        names = [why.role_name, end.role_name, str(line.role_name)]
        await db.rollback()
    return names


async def test_an_undone_removal_gives_the_role_back_and_it_stays_until_a_rule_has_said_yes_again(
    town: Town, engine: Engine
) -> None:
    token = await town.buys("carol")
    await town.rule("Holder")
    admin = Actor(user_id=0, discord_id=town.people["ada"]["id"], username="ada")
    async with engine():
        await town.prove("carol")
        await given(town)
        await town.sells(token)
        await town.look()
        await taken(town)
        await until(lambda: _empty(town))
        async with transaction() as db:
            (line,) = await activity.lines(db, town.server_id, LogFilter(kind="role.taken"))
            assert (await undo.undo(db, gateways(), admin, town.server_id, UUID(line.batch or ""))).members == 1
        await given(town)
        await looked_at(town)
        assert [row.state for row in await grants(town)] == ["held"]
        assert await names_without_a_rule(town) == ["Holder", "Holder", "Holder"]
        token = await town.buys("carol")
        await looked_at(town)
        assert [row.gift_since for row in await grants(town)] == [None]
        await town.sells(token)
        await town.look()
        await taken(town)


async def test_the_breaker_holds_back_when_too_many_would_lose_a_role(town: Town, engine: Engine) -> None:
    crowd = [f"p{number}" for number in range(6)]
    for name in crowd:
        town.people[name] = await town.call("people", username=f"{name}-{town.name[-8:]}")
        await town.call("members", guild=town.name, user=town.people[name]["id"], action="join")
    await town.see()
    rule_id = await town.rule("Holder")
    for name in crowd:
        await town.buys(name)
    async with engine():
        for name in crowd:
            await town.prove(name)
        for name in crowd:
            await given(town, name)
        await until(lambda: nobody_is_due(town))
        start = await town.mark()
        # All six have to be judged in one claim: a second looker beside the engine's would share them with it.
        await town.change(rule_id, min_tokens=2, expression={**(await _expression(rule_id)), "minTokens": 2})
        await until(lambda: nobody_is_due(town))
    assert await town.writes(start) == []
    assert {row.state for row in await grants(town)} == {"held"}
    assert all(row.held_back_at and row.evidence["readings"][0]["held"] == "1" for row in await grants(town))
    assert "breaker.tripped" in await kinds(town)
    admin = Actor(user_id=0, discord_id=town.people["ada"]["id"], username="ada")
    async with transaction() as db:
        assert await breaker.dismiss(db, town.server_id, admin.discord_id) == 1
    await looked_at(town)
    assert {row.state for row in await grants(town)} == {"held"}
    async with engine():
        async with transaction() as db:
            assert await held_back.release_removals(db, admin, town.server_id) == 1
        for name in crowd:
            await taken(town, name)
        await until(lambda: _empty(town))
    async with transaction() as db:
        of_removals = select(Event.batch).where(Event.server_id == town.server_id, Event.kind == "role.taken")
        batches = (await db.exec(of_removals)).all()
    assert len(batches) == 6
    assert len(set(batches)) == 1
    assert None not in batches


async def _expression(rule_id: int) -> dict[str, object]:
    found = await rule(rule_id)
    assert found is not None
    return found.expression


async def test_a_requests_name_follows_its_change_to_discord_and_into_the_log(
    town: Town, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    before = logging.getLogRecordFactory()
    redact_every_log()
    caplog.set_level(logging.INFO, "holdfast")
    try:
        token = await town.buys("carol")
        with request_ids.under("r-given-0001"):
            await town.rule("Holder")
        with request_ids.under("r-proof-0002"):
            await town.prove("carol")
        async with engine():
            await given(town)
            await town.sells(token)
            with request_ids.under("r-check-0003"):
                await town.look()
            await taken(town)
            await until(lambda: _empty(town))
    finally:
        logging.setLogRecordFactory(before)
    async with transaction() as db:
        rows = await db.exec(select(Event).where(Event.server_id == town.server_id).order_by(col(Event.id)))
        followed = [(row.kind, row.request_id) for row in rows.all() if row.kind in {"role.given", "role.taken"}]
    assert followed == [("role.given", "r-proof-0002"), ("role.taken", "r-check-0003")]
    told = {(record.name, record.__dict__["request_id"]) for record in caplog.records}
    for part in ("services.engine.reconcile", "jobs.role_writer"):
        for name in ("r-proof-0002", "r-check-0003"):
            assert (f"holdfast.{part}", name) in told
