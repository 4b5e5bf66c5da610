"""The checklist above a new server's tabs, as its admins see it."""

from collections.abc import AsyncIterator

import pytest

from models import Server, transaction
from services.core.errors import ServerNotFound
from services.health.first_steps import BOT, CHANNEL, MEMBER, ORDER, RULE
from state.server.first_steps import FirstStepsState
from tests.jobs.town import Town, a_town
from tests.state.conftest import SignIn, Tab
from tests.state.towns import opened


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    """A guild with the bot in it, where nothing has been set up."""
    async with a_town(sandbox_url, "ada", "carol") as made:
        yield made


async def checklist(tab: Tab, town: Town, name: str = "rules") -> dict[str, bool]:
    """Return the steps that the tab shows, and whether each is done."""
    state = await opened(tab, FirstStepsState, town.server_id, name)
    assert sum(step.next for step in state.steps) == (1 if state.steps else 0)
    return {step.key: step.done for step in state.steps}


async def test_it_follows_what_happens_and_is_gone_when_all_is_done(sign_in: SignIn, town: Town) -> None:
    tab, _ = await sign_in(town.people["ada"]["username"])
    wanted = {BOT: True, ORDER: True, RULE: False, CHANNEL: False, MEMBER: False}
    assert await checklist(tab, town) == wanted
    assert (await tab.state(FirstStepsState)).done == 2
    await town.rule("Holder")
    assert await checklist(tab, town, "health") == wanted | {RULE: True}
    await town.call("guilds", guild=town.name, action="move_role", role="Holder", position=90)
    await town.see()
    assert await checklist(tab, town) == wanted | {RULE: True, ORDER: False}
    await town.call("guilds", guild=town.name, action="move_role", role="Holder", position=1)
    await town.see()
    await town.prove("carol")
    async with transaction() as db:
        (await db.get_one(Server, town.server_id)).verify_channel_id = "1"
    assert await checklist(tab, town) == {}


async def test_one_admin_hides_it_for_all(sign_in: SignIn, town: Town) -> None:
    tab, _ = await sign_in(town.people["ada"]["username"])
    assert await checklist(tab, town)
    await tab.run((await tab.state(FirstStepsState)).hide())
    assert (await tab.state(FirstStepsState)).steps == []
    other, _ = await sign_in(town.people["ada"]["username"])
    assert await checklist(other, town) == {}


async def test_nobody_else_sees_or_hides_it(sign_in: SignIn, town: Town) -> None:
    tab, _ = await sign_in(town.people["carol"]["username"])
    state = await opened(tab, FirstStepsState, town.server_id, "rules")
    assert state.steps == []
    with pytest.raises(ServerNotFound):
        await tab.run(state.hide())
    async with transaction() as db:
        assert not (await db.get_one(Server, town.server_id)).steps_hidden


async def test_a_read_checklist_stays_while_discord_is_away(
    sign_in: SignIn, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gateways import gateways
    from services.guilds import permission_cache

    tab, _ = await sign_in(town.people["ada"]["username"])
    before = await checklist(tab, town)
    await town.break_("down", "discord")
    monkeypatch.setattr(gateways().discord, "_deadline", 0.3)
    monkeypatch.setattr(permission_cache, "KEPT_SECONDS", 0.0)
    state = await tab.state(FirstStepsState)
    await tab.run(state.load())
    assert {step.key: step.done for step in state.steps} == before
