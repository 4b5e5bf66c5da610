"""The Move tab: the form that begins a move, its progress, the names, and the dialogs before end and undo."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from sqlmodel import delete, select, update

from models import MoveCount, Rule, ServerMove, Wallet, now, transaction
from services.core.errors import ProviderUnavailable
from services.guilds import verification_channel
from services.roles.moves import coverage, lifecycle
from settings import settings
from state.core.toasts import ToastState
from state.dashboard.server_page import ServerPageState
from state.rule_form.preview import RulePreviewState
from state.server.move import END, NONE, MoveState, _arrived
from tests.jobs.town import Town, a_town
from tests.jobs.writing.test_taking_over import handed
from tests.state.conftest import SignIn
from tests.state.towns import opened


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    """A town owned by ada; carol, who has no wallet, and dave, who has one, have Holder from another bot."""
    async with a_town(sandbox_url, "ada", "carol", "dave") as made:
        for who in ("carol", "dave"):
            await handed(made, who)
        await made.see()
        await made.prove("dave")
        await made.rule("Holder")
        yield made


async def stored() -> list[ServerMove]:
    async with transaction() as db:
        return list((await db.exec(select(ServerMove))).all())


async def test_a_move_is_begun_watched_changed_ended_and_undone(sign_in: SignIn, town: Town) -> None:
    tab, _ = await sign_in(town.people["ada"]["username"])
    move = await opened(tab, MoveState, town.server_id, "move")
    assert (move.state, [(one.name, one.chosen) for one in move.choices]) == (NONE, [("Holder", True)])
    await tab.run(move.save())
    assert (move.state, move.fault_text) == ("running", "")
    await tab.run(move.save())
    assert (await tab.state(ToastState)).title == "The move has begun", "a double click begins it, and changes nothing"
    assert move.headline.startswith("The move runs until ")
    (role,) = move.roles
    assert (role.right, role.wrong, role.unverified, role.unknown, role.undecided) == (0, 0, 1, 1, "")
    assert (role.summary, role.shares) == ("0 of 2 holders have arrived", ["0.000%", "0.000%", "50.000%", "50.000%"])

    await tab.run(move.show_names(role.id, coverage.UNVERIFIED))
    assert (move.names, move.names_more) == ([town.people["carol"]["username"]], 0)
    assert move.named_title.endswith(": no wallet counts here"), "some have verified one, and let none count"
    await tab.run(move.show_names(role.id, coverage.UNVERIFIED))
    assert move.named_role == ""

    async with transaction() as db:
        await db.exec(update(Rule).values(state="shadow"))
    await tab.run(move.look())
    assert move.roles[0].undecided.startswith("No active rule gives this role yet")
    async with transaction() as db:
        await db.exec(update(Rule).values(state="active"))
        assert await coverage.store_oldest(db)
    await tab.run(move.look())
    assert [(bar.standing, bar.y, bar.height) for bar in move.bars] == [("unverified", 200, 200), ("unknown", 0, 200)]
    assert [(one.unverified, one.unknown) for one in move.days] == [(1, 1)]
    assert move.chart_summary == "0 of 2 holders have arrived"
    async with transaction() as db:
        (row,) = (await db.exec(select(MoveCount))).all()
        before = {"day": row.day - timedelta(days=1), "earned": 2, "unearned": 0, "unverified": 0, "unknown": 0}
        db.add(MoveCount(move_id=row.move_id, role_id=row.role_id, **before))
    await tab.run(move.look())
    assert [bar.x for bar in move.bars] == [7, 79, 79], "the oldest day is on the left"
    assert move.chart_summary.startswith("Holders who have arrived: 2 on ")

    await tab.run(move.edit())
    before = move.until
    move.set_until("2999-12-31")
    await tab.run(move.load())
    assert (move.editing, move.until) == (True, "2999-12-31"), "a lost connection reads the tab again"
    move.cancel()
    await tab.run(move.edit())
    assert move.until == before, "what was cancelled is not saved with the next change"
    move.set_until("2999-12-31")
    later = now() + timedelta(days=3)
    async with transaction() as db:
        await db.exec(update(ServerMove).values(until=later))
    await tab.run(move.load())
    move.cancel()
    assert move.until == f"{later:%Y-%m-%d}", "what another admin has chosen meanwhile stays"
    await tab.run(move.edit())
    move.choose(role.id, False)
    await tab.run(move.save())
    assert (move.fault_field, move.fault_text) == ("roles", "Choose at least one role to hand over.")
    move.choose(role.id, True)
    move.set_until("31.12.2999")
    await tab.run(move.save())
    assert (move.fault_field, move.fault_text) == ("until", "This is not a date.")

    async with transaction() as db:
        await db.exec(update(ServerMove).values(begins_at=now() - timedelta(days=1), until=now()))
    move = await opened(tab, MoveState, town.server_id, "move")
    assert move.headline == "The time of the move is over: it waits for your approval"
    await tab.run(move.ask_end())
    impact = await tab.state(RulePreviewState)
    assert (move.asked, impact.busy) == (END, True)
    await tab.run(move.confirm())
    assert ((await stored())[0].state, move.state) == ("approved", "approved")
    move.ask_undo()
    await tab.run(move.confirm())
    assert ((await stored())[0].state, move.state) == ("undone", NONE)
    toast = await tab.state(ToastState)
    assert (toast.title, toast.text) == ("Move undone", "Everybody keeps the roles of the move.")


async def test_of_more_roles_than_a_move_can_have_none_is_chosen_in_advance(
    sign_in: SignIn, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "MOST_ROLES", 1)
    await town.rule("Whale")
    tab, _ = await sign_in(town.people["ada"]["username"])
    move = await opened(tab, MoveState, town.server_id, "move")
    assert (len(move.choices), [one for one in move.choices if one.chosen]) == (lifecycle.MOST_ROLES + 1, [])


async def test_an_end_and_an_undo_say_that_discord_refused_the_messages(
    sign_in: SignIn, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    tab, _ = await sign_in(town.people["ada"]["username"])
    move = await opened(tab, MoveState, town.server_id, "move")
    await tab.run(move.save())
    async with transaction() as db:
        await db.exec(update(ServerMove).values(begins_at=now() - timedelta(days=1), until=now()))

    async def refused(*_arguments: object) -> bool:
        return False

    monkeypatch.setattr(verification_channel, "refresh_panel", refused)
    move = await opened(tab, MoveState, town.server_id, "move")
    toast = await tab.state(ToastState)
    told = f" Discord did not let {settings().bot_name} change its messages. Repair the verification channel."
    await tab.run(move.ask_end())
    await tab.run(move.confirm())
    assert (toast.title, toast.text) == ("End of the move approved", f"The rules decide about its roles now.{told}")
    move.ask_undo()
    await tab.run(move.confirm())
    assert (toast.title, toast.text) == ("Move undone", f"Everybody keeps the roles of the move.{told}")


async def test_a_day_that_is_not_changed_keeps_its_time(sign_in: SignIn, town: Town) -> None:
    tab, _ = await sign_in(town.people["ada"]["username"])
    move = await opened(tab, MoveState, town.server_id, "move")
    move.begins = f"{now() + timedelta(days=3):%Y-%m-%d}"
    await tab.run(move.save())
    (begun,) = await stored()
    begins, until = begun.begins_at + timedelta(hours=15), begun.until - timedelta(hours=9)
    async with transaction() as db:
        await db.exec(update(ServerMove).values(begins_at=begins, until=until))
    await tab.run(move.load())
    await tab.run(move.edit())
    await tab.run(move.save())
    (kept,) = await stored()
    assert (move.fault_text, kept.begins_at, kept.until) == ("", begins, until)
    await tab.run(move.edit())
    move.set_until(f"{until + timedelta(days=1):%Y-%m-%d}")
    await tab.run(move.save())
    (later,) = await stored()
    assert (later.begins_at, later.until) == (begins, begun.until + timedelta(days=1))


async def test_the_form_of_a_move_shows_what_another_admin_has_changed_meanwhile(sign_in: SignIn, town: Town) -> None:
    tab, _ = await sign_in(town.people["ada"]["username"])
    move = await opened(tab, MoveState, town.server_id, "move")
    await tab.run(move.save())
    later = now() + timedelta(days=50)
    async with transaction() as db:
        await db.exec(update(ServerMove).values(until=later))
    await tab.run(move.look())
    await tab.run(move.edit())
    assert (move.editing, move.until) == (True, f"{later:%Y-%m-%d}")


async def test_a_move_that_another_admin_begins_is_shown_and_not_replaced(sign_in: SignIn, town: Town) -> None:
    hers, _ = await sign_in(town.people["ada"]["username"])
    his, _ = await sign_in(town.people["ada"]["username"])
    mine = await opened(hers, MoveState, town.server_id, "move")
    theirs = await opened(his, MoveState, town.server_id, "move")
    theirs.set_until(f"{now() + timedelta(days=50):%Y-%m-%d}")
    await his.run(theirs.save())
    (begun,) = await stored()
    await hers.run(mine.save())
    assert "was changed meanwhile" in await hers.toast()
    assert [one.until for one in await stored()] == [begun.until]
    assert (mine.state, mine.until, mine.editing, mine.saving) == ("running", theirs.until, False, False)


async def test_the_end_of_a_move_to_which_another_admin_added_a_role_meanwhile_is_not_approved(
    sign_in: SignIn, town: Town
) -> None:
    tab, _ = await sign_in(town.people["ada"]["username"])
    move = await opened(tab, MoveState, town.server_id, "move")
    await tab.run(move.save())
    async with transaction() as db:
        await db.exec(update(ServerMove).values(begins_at=now() - timedelta(days=1), until=now()))
    move = await opened(tab, MoveState, town.server_id, "move")
    await tab.run(move.ask_end())
    async with transaction() as db:
        rule = (await db.exec(select(Rule))).one()
        db.add(Rule(**(rule.model_dump() | {"id": None, "role_id": "9000", "role_name": "Another"})))
        await db.exec(update(ServerMove).values(roles=[rule.role_id, "9000"]))
    await tab.run(move.confirm())
    assert "was changed meanwhile" in await tab.toast()
    (kept,) = await stored()
    assert (kept.state, len(move.roles), move.working, move.asked) == ("open", 2, False, "")
    await tab.run(move.ask_end())
    await tab.run(move.confirm())
    assert (await stored())[0].state == "approved"


async def test_a_change_made_while_the_form_of_a_move_is_open_is_replaced_only_by_a_second_save(
    sign_in: SignIn, town: Town
) -> None:
    tab, _ = await sign_in(town.people["ada"]["username"])
    move = await opened(tab, MoveState, town.server_id, "move")
    await tab.run(move.save())
    await tab.run(move.edit())
    mine = f"{now() + timedelta(days=40):%Y-%m-%d}"
    move.set_until(mine)
    later = now() + timedelta(days=50)
    async with transaction() as db:
        await db.exec(update(ServerMove).values(until=later))
    await tab.run(move.save())
    assert "was changed meanwhile" in await tab.toast()
    assert ([one.until for one in await stored()], move.editing, move.until) == ([later], True, mine)
    await tab.run(move.save())
    assert ([f"{one.until:%Y-%m-%d}" for one in await stored()], move.editing) == ([mine], False)


async def test_what_is_typed_is_cancelled_also_after_an_undo_that_failed(
    sign_in: SignIn, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    tab, _ = await sign_in(town.people["ada"]["username"])
    move = await opened(tab, MoveState, town.server_id, "move")
    await tab.run(move.save())
    await tab.run(move.edit())
    before = move.until
    move.set_until("2999-12-31")

    async def silent(*_: object, **__: object) -> None:
        raise ProviderUnavailable("Discord does not answer.")

    monkeypatch.setattr(lifecycle, "undo", silent)
    move.ask_undo()
    with pytest.raises(ProviderUnavailable):
        await tab.run(move.confirm())
    move.cancel()
    assert move.until == before


def test_one_holder_is_one_holder() -> None:
    assert _arrived(1, 1) == "1 of 1 holder has arrived"
    assert _arrived(1, 2) == "1 of 2 holders have arrived"


async def test_a_move_that_another_admin_undoes_is_no_longer_shown(sign_in: SignIn, town: Town) -> None:
    tab, _ = await sign_in(town.people["ada"]["username"])
    move = await opened(tab, MoveState, town.server_id, "move")
    await tab.run(move.save())
    assert move.state == "running"
    async with transaction() as db:
        await db.exec(update(ServerMove).values(state="cancelled", ended_at=now()))
    await tab.run(move.look())
    assert (move.state, move.roles) == (NONE, [])


async def test_who_no_longer_runs_the_server_is_told_once(sign_in: SignIn, town: Town) -> None:
    tab, _ = await sign_in(town.people["ada"]["username"])
    move = await opened(tab, MoveState, town.server_id, "move")
    await tab.run(move.save())
    stranger, _ = await sign_in(town.people["dave"]["username"])
    tab._cookie = stranger._cookie
    tab.go("/server-config", serverId=town.server_id, tab="move")
    await tab.run(move.look())
    assert (await tab.state(ServerPageState)).missing


async def test_names_that_could_not_be_read_are_not_skipped(
    sign_in: SignIn, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    tab, _ = await sign_in(town.people["ada"]["username"])
    monkeypatch.setattr(coverage, "PAGE", 1)
    async with transaction() as db:
        await db.exec(delete(Wallet))
    move = await opened(tab, MoveState, town.server_id, "move")
    await tab.run(move.save())
    (role,) = move.roles
    read = coverage.holders

    async def silent(*_: object, **__: object) -> None:
        raise ProviderUnavailable("Discord does not answer.")

    monkeypatch.setattr(coverage, "holders", silent)
    with pytest.raises(ProviderUnavailable):
        await tab.run(move.show_names(role.id, coverage.UNVERIFIED))
    assert move.named_role == "", "no list is shown as empty"
    monkeypatch.setattr(coverage, "holders", read)
    await tab.run(move.show_names(role.id, coverage.UNVERIFIED))
    assert (len(move.names), move.names_more) == (1, 1)
    monkeypatch.setattr(coverage, "holders", silent)
    with pytest.raises(ProviderUnavailable):
        await tab.run(move.more_names())
    monkeypatch.setattr(coverage, "holders", read)
    await tab.run(move.more_names())
    assert sorted(move.names) == sorted(town.people[who]["username"] for who in ("carol", "dave"))


async def test_a_role_that_was_deleted_in_discord_is_offered_only_to_be_taken_out_of_the_move_that_has_it(
    sign_in: SignIn, town: Town
) -> None:
    await town.rule("Whale")
    tab, _ = await sign_in(town.people["ada"]["username"])
    move = await opened(tab, MoveState, town.server_id, "move")
    assert [one.name for one in move.choices] == ["Holder", "Whale"]
    await town.call("guilds", guild=town.name, action="delete_role", role="Whale")
    await tab.run(move.load())
    assert [(one.name, one.chosen) for one in move.choices] == [("Holder", True)]
    await tab.run(move.save())
    assert move.state == "running"
    await town.call("guilds", guild=town.name, action="delete_role", role="Holder")
    await tab.run(move.load())
    assert [(one.name, one.chosen) for one in move.choices] == [("Holder", True)]
