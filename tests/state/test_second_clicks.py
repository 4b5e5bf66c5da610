"""The second click of a double click: it runs after the first is done, and takes nothing back of what that one said."""

from state.core.toasts import ToastState
from state.server.channels import CHECK, CREATE, REPAIR, ChannelsState
from tests.app.api.server.test_rights import town as town
from tests.jobs.town import Town
from tests.state.conftest import SignIn
from tests.state.towns import opened


async def test_a_created_and_a_repaired_channel_are_said_once(sign_in: SignIn, town: Town) -> None:
    tab, _ = await sign_in(town.people["ada"]["username"])
    channel, toasts = await opened(tab, ChannelsState, town.server_id, "channel"), await tab.state(ToastState)
    for _turn in range(2):
        await tab.run(channel.repair(CREATE))
    assert await tab.toast() == "#verify is ready: Created the channel #verify. Posted the panel."
    channel.faults = ["The panel was deleted."]
    for _turn in range(2):
        await tab.run(channel.repair(REPAIR))
    assert toasts.number == 2
    await tab.run(channel.repair(CHECK))
    assert await tab.toast() == "#verify is ready: There was nothing to repair."
