"""The panel's fields on the Verification channel tab."""

import pytest

from models import Server, transaction
from services.core.errors import Conflict
from state.core.toasts import ToastState
from state.dashboard.server_page import ServerPageState
from state.server.api_tokens import ApiTokensState
from state.server.channels import ChannelsState
from state.server.panel import BUTTON, LONGEST_TYPED, TEXT, TITLE, BlockView, PanelState, RunView
from tests.state.conftest import SignIn
from tests.state.towns import opened, with_rule


async def test_the_inputs_stay_while_their_texts_do(sign_in: SignIn) -> None:
    tab, browser = await sign_in("ada")
    server_id = (await with_rule(browser))["serverId"]
    await opened(tab, ChannelsState, server_id, "channel")
    state = await tab.state(PanelState)
    key, title = state.key, state.title
    assert (key, bool(title)) == (1, True)
    await opened(tab, ChannelsState, server_id, "channel")
    await tab.run(state.restore())
    assert (state.key, state.title) == (key, title), "the inputs stay: somebody may type in them already"
    await tab.run(state.enter_title("Welcome"))
    await tab.run(state.restore())
    assert (state.key, state.title) == (key + 1, title), "new inputs show the default texts"


async def test_a_panel_that_another_admin_has_changed_is_replaced_only_by_a_second_save(sign_in: SignIn) -> None:
    hers, browser = await sign_in("ada")
    his, _ = await sign_in("ada")
    server_id = (await with_rule(browser))["serverId"]
    await opened(hers, ChannelsState, server_id, "channel")
    await opened(his, ChannelsState, server_id, "channel")
    mine, theirs = await hers.state(PanelState), await his.state(PanelState)
    for _turn in range(2):
        await his.run(theirs.save({TITLE: "Theirs"}))
        assert (await his.toast()).startswith("Panel saved"), "one's own changes do not stand in the way"

    async def stored() -> tuple[str | None, str | None]:
        async with transaction() as db:
            server = await db.get_one(Server, server_id)
            return server.panel_title, server.panel_button

    await hers.run(mine.save({BUTTON: "Mine"}))
    assert (await hers.toast()).startswith("Panel not saved: The panel was changed after you opened it.")
    assert (await stored(), mine.button) == (("Theirs", None), "Mine")
    await hers.run((await hers.state(ChannelsState)).load())
    assert mine.button == "Mine"
    await hers.run(mine.save({}))
    assert (await hers.toast()).startswith("Panel saved")
    assert (await stored())[1] == "Mine"


async def test_a_log_channel_that_is_not_saved_yet_stays_chosen(sign_in: SignIn) -> None:
    tab, browser = await sign_in("ada")
    server_id = (await with_rule(browser))["serverId"]
    channel = await opened(tab, ChannelsState, server_id, "channel")
    channel.choose(channel.options[0].id)
    await tab.run(channel.load())
    assert (channel.chosen, channel.log_channel_id) == (channel.options[0].id, "")
    channel.choose("7")
    await tab.run(channel.load())
    assert channel.chosen == "", "there is no such channel"


async def test_what_is_typed_for_one_server_is_not_saved_in_the_next_one(sign_in: SignIn) -> None:
    tab, browser = await sign_in("ada")
    server_id = (await with_rule(browser))["serverId"]
    channel = await opened(tab, ChannelsState, server_id, "channel")
    state = await tab.state(PanelState)
    developers = await opened(tab, ApiTokensState, server_id, "developers")
    developers.open_form()
    await tab.run(state.enter_title("Welcome"))
    # The address names the next server before its tabs have been read.
    tab.go("/server-config", serverId=server_id + 1, tab="channel")
    (await tab.state(ServerPageState))._read_address()
    for press in (state.save({}), channel.save(), developers.create()):
        await tab.run(press)
        assert "shows another server now" in await tab.toast()
        (await tab.state(ToastState)).text = ""
    with pytest.raises(Conflict, match="shows another server now"):
        await tab.run(channel.repair(channel._needs()))
    assert {state.saving, channel.saving, channel.working, developers.working} == {False}


async def test_a_text_is_drawn_up_to_what_can_be_typed_however_it_comes_and_whatever_it_names(sign_in: SignIn) -> None:
    tab, _browser = await sign_in("ada")
    tab.go("/server-config")
    state = await tab.state(PanelState)
    long = "`" * (LONGEST_TYPED + 1)
    await tab.run(state.save({TITLE: long, TEXT: "a\n" * LONGEST_TYPED}))
    assert (len(state.title), len(state.text)) == (LONGEST_TYPED, LONGEST_TYPED)
    assert max(_drawn([BlockView("text", "", 0, state.shown_title)]), _drawn(state.shown)) <= LONGEST_TYPED
    state._server_name = "S" * 100
    names = "{server}" * (LONGEST_TYPED // 8)
    await tab.run(state.save({TITLE: names, TEXT: names}))
    assert max(_drawn([BlockView("text", "", 0, state.shown_title)]), _drawn(state.shown)) <= LONGEST_TYPED


def _drawn(blocks: list[BlockView]) -> int:
    runs: list[RunView] = [run for block in blocks for run in block.runs]
    return sum(len(run.text) for run in runs)
