"""A rule's numbers day by day: counted again daily and after transfers, and only for the conditions that it has."""

import pytest
from sqlalchemy import text

from models import transaction
from services.collections.census import census_queue, count_by_transfers, reach_by_day
from services.collections.census import reach_numbers as numbers_of_rules
from services.rules.expression import parse, to_document
from services.triggers import sightings
from services.triggers.sightings import Moved
from tests.jobs.counting.counts import NOBODY, asked, leaf, numbers, stale, view, worked
from tests.jobs.town import BOTH, Town


async def begun_today() -> int:
    async with transaction() as db:
        await reach_by_day.begin_due(db)
        found = await db.execute(text("SELECT count(*) FROM reach WHERE daily AND state = 'counting'"))
        return int(found.scalar_one())


async def test_a_rule_whose_collection_was_counted_has_its_numbers_each_day(town: Town) -> None:
    rule_id = await town.rule("Holder")
    assert await begun_today() == 0, "nobody asked for a count"
    await numbers(town, leaf(town))
    async with transaction() as db:
        ((_, holders, verified),) = await reach_by_day.of_rule(db, town.server_id, rule_id)
        assert (holders, verified) == (2, 1)
        assert await reach_by_day.of_rule(db, town.server_id + 1, rule_id) == []
        await db.execute(text("UPDATE reach_day SET day = day - 1"))
        await db.execute(text("UPDATE reach SET daily = true"))
    await town.call("chains/base/mint", contract=town.contract, token_id="60", to=NOBODY)
    await stale()
    assert await begun_today() == 1
    assert await begun_today() == 1, "it is under way"
    await worked()
    assert await begun_today() == 0
    async with transaction() as db:
        found = await reach_by_day.of_rule(db, town.server_id, rule_id)
    assert [one.holders for one in found] == [2, 3]


async def test_numbers_of_other_conditions_are_not_shown(town: Town) -> None:
    rule_id = await town.rule("Holder")
    await numbers(town, leaf(town))
    async with transaction() as db:
        assert {found: one.holders for found, one in (await reach_by_day.newest(db, town.server_id)).items()} == {
            rule_id: 2
        }
        assert await reach_by_day.newest(db, town.server_id + 1) == {}
    two = leaf(town, minTokens=2)
    await town.change(rule_id, expression=to_document(parse(two)))
    async with transaction() as db:
        assert await reach_by_day.newest(db, town.server_id) == {}
        assert await reach_by_day.of_rule(db, town.server_id, rule_id) == []
    await numbers(town, two)
    async with transaction() as db:
        assert [one.holders for one in await reach_by_day.of_rule(db, town.server_id, rule_id)] == [1]


async def test_a_transfer_has_the_rule_counted_again_within_the_day(town: Town) -> None:
    rule_id = await town.rule("Holder")
    await numbers(town, leaf(town))
    async with transaction() as db:
        await db.execute(text("UPDATE reach_day SET at = at - interval '2 hours'"))
    assert await begun_today() == 0, "nothing moved"
    await town.sells("3")
    await stale()
    async with transaction() as db:
        moved = [Moved(town.contract.lower(), town.wallet("dave"), 1), Moved("0xother", town.wallet("dave"), 1)]
        sightings.record_moves(db, town.chain, moved, {}, sightings.Marks(), 0.0)
    assert await begun_today() == 1
    await worked()
    async with transaction() as db:
        assert [one.holders for one in await reach_by_day.of_rule(db, town.server_id, rule_id)] == [2]
    assert await begun_today() == 0, "it was counted within the hour"


async def test_a_failure_replaces_no_number_of_the_same_day(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    rule_id = await town.rule("Holder")
    await numbers(town, leaf(town))
    monkeypatch.setattr(count_by_transfers, "MOST_FAULTS", 1)
    await stale()
    await town.break_("500", *BOTH)
    assert (await numbers(town, leaf(town))).state == "failed"
    async with transaction() as db:
        assert [one.holders for one in await reach_by_day.of_rule(db, town.server_id, rule_id)] == [2]


async def test_a_rule_that_cannot_be_counted_is_asked_about_once_a_day(town: Town) -> None:
    rule_id = await town.rule("Holder")
    await numbers(town, leaf(town))
    await town.change(rule_id, expression={"not": leaf(town)})
    async with transaction() as db:
        await db.execute(text("DELETE FROM reach_day"))
    assert await begun_today() == 0
    async with transaction() as db:
        reasons = await db.execute(text("SELECT holders, reason FROM reach_day"))
        assert reasons.all() == [(None, numbers_of_rules.EVERYBODY)]


async def test_a_rule_of_a_newer_version_keeps_no_other_rule_from_being_counted(town: Town) -> None:
    rule_id, other = await town.rule("Holder"), await town.rule("Holder")
    await numbers(town, leaf(town))
    await town.change(rule_id, expression=leaf(town, newer=True))
    await stale()
    async with transaction() as db:
        await db.execute(text("UPDATE reach_day SET day = day - 1, at = at - interval '1 day'"))
        await db.execute(text("UPDATE reach SET daily = true"))
    assert await begun_today() == 0, "this version cannot count it"
    assert await begun_today() == 1, "the other rule is counted"
    await worked()
    async with transaction() as db:
        assert len(await reach_by_day.of_rule(db, town.server_id, other)) == 2


async def test_a_count_that_a_newer_version_began_ends(town: Town) -> None:
    reach_id = await asked(town, leaf(town))
    async with transaction() as db:
        await db.execute(text("UPDATE reach SET expression = expression || jsonb_build_object('newer', true)"))
    await worked()
    assert (await view(reach_id)).state == "failed"


async def test_a_server_without_room_keeps_no_other_from_being_counted(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    await town.rule("Holder")
    await numbers(town, leaf(town))
    await stale()
    async with transaction() as db:
        await db.execute(text("UPDATE reach_day SET day = day - 1, at = at - interval '1 day'"))
        await db.execute(text("UPDATE reach SET daily = true"))
    monkeypatch.setattr(census_queue, "MOST_OF_A_SERVER", -1)
    assert await begun_today() == 1
    await worked()
    assert await begun_today() == 0, "its turn would come at once, before that of every server with newer rules"
    async with transaction() as db:
        await db.execute(text("UPDATE reach SET ended_at = ended_at - interval '1 hour'"))
    assert await begun_today() == 1
