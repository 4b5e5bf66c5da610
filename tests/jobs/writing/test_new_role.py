"""A role replaces another while the engine runs: the new one is given, then the old one is taken; then the reverse."""

from gateways import gateways
from models import Rule, transaction
from services.core.actors import Actor
from services.engine.previews import preview
from services.engine.previews.plan import plan
from services.engine.previews.proposals import NewRole
from services.rules import pausing
from services.rules.replacements import new_role
from services.rules.replacements.new_role import RoleOrder
from services.servers import undo
from tests.jobs.conftest import Engine
from tests.jobs.town import Town, until


async def test_the_new_role_is_given_before_the_old_one_is_taken_and_undo_does_the_same(
    town: Town, engine: Engine
) -> None:
    actor = Actor(1, town.people["ada"]["id"], town.people["ada"]["username"])
    old, new = await town.role("Holder"), await town.role("Collector")
    rule_id = await town.rule("Holder")
    await town.buys("carol")
    for who in ("carol", "dave"):
        await town.prove(who)
    order = RoleOrder(old, new)

    async def has(*roles: str) -> bool:
        return {name for name in ("Holder", "Collector") if await town.has("carol", name)} == set(roles)

    async def writes(since: int) -> list[tuple[str, str]]:
        """Return the writes about these two roles since then, in order."""
        return [
            (one["method"], one["path"].rpartition("/")[2])
            for one in await town.requests(since, "discord")
            if one["method"] in {"PUT", "DELETE"} and one["path"].rpartition("/")[2] in {old, new}
        ]

    async with engine():
        await until(lambda: has("Holder"))
        async with transaction() as db:
            planned = await plan(db, gateways(), actor, NewRole(town.server_id, order))
        seen = await preview.whole(gateways(), planned)
        assert {(one.role_name, one.outcome) for one in seen.members} == {("Collector", "gain"), ("Holder", "lose")}
        start = await town.mark()
        async with transaction() as db:
            looked = await new_role.preview(db, gateways(), actor, town.server_id, order)
            assert (await db.get_one(Rule, rule_id, populate_existing=True)).role_id == old
            done = await new_role.apply(db, gateways(), actor, town.server_id, order)
        assert (looked.members, looked.old_name, looked.new_name, done.left) == (1, "Holder", "Collector", ())
        await until(lambda: has("Collector"))
        assert await writes(start) == [("PUT", new), ("DELETE", old)]

        again = await town.mark()
        assert done.batch is not None
        async with transaction() as db:
            told = await undo.undo(db, gateways(), actor, town.server_id, undo.UUID(done.batch))
        assert told.text.startswith("1 rule gives Holder again.")
        await until(lambda: has("Holder"))
        assert await writes(again) == [("PUT", old), ("DELETE", new)]


async def test_an_undo_resumes_what_was_paused_for_the_new_role_and_not_what_an_admin_paused(town: Town) -> None:
    actor = Actor(1, town.people["ada"]["id"], town.people["ada"]["username"])
    old, new = await town.role("Holder"), await town.role("Collector")
    by_cause, by_admin = await town.rule("Holder"), await town.rule("Holder")
    async with transaction() as db:
        done = await new_role.apply(db, gateways(), actor, town.server_id, RoleOrder(old, new))
        row = await db.get_one(Rule, by_admin, populate_existing=True)
        row.state, row.pause_reason = "paused", "Paused by an admin"
        db.add(row)
    async with transaction() as db:
        assert await pausing.pause_role(db, town.server_id, new, "It is gone.", "role_gone") == 1
    async with transaction() as db:
        assert done.batch is not None
        await undo.undo(db, gateways(), actor, town.server_id, undo.UUID(done.batch))
    async with transaction() as db:
        one, other = await db.get_one(Rule, by_cause), await db.get_one(Rule, by_admin)
    assert (one.role_id, one.state, one.pause_reason) == (old, "active", None)
    assert (other.role_id, other.state, other.pause_reason) == (old, "paused", "Paused by an admin")
