"""The panel's fields on the Verification channel tab."""

from collections.abc import Awaitable, Callable

from state.server.channels import ChannelsState
from state.server.panel import PanelState
from tests.app.api.browsers import Browser
from tests.state.conftest import Tab
from tests.state.towns import opened, with_rule

SignIn = Callable[[str], Awaitable[tuple[Tab, Browser]]]


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
