"""The second click of a double click: it runs after the first is done, and takes nothing back of what that one said."""

from sqlmodel import select

from models import Event, transaction
from state.account.my_data import MyDataState
from state.core.toasts import ToastState
from state.server.api_tokens import ApiTokensState
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


async def test_a_log_channel_is_greeted_once(sign_in: SignIn, town: Town) -> None:
    tab, _ = await sign_in(town.people["ada"]["username"])
    channel = await opened(tab, ChannelsState, town.server_id, "channel")
    general = (await town.guild())["channels"][0]["id"]
    channel.choose(general)
    for _turn in range(2):
        await tab.run(channel.save())
    assert (await tab.state(ToastState)).number == 1
    async with transaction() as db:
        assert len((await db.exec(select(Event).where(Event.kind == "log_channel.chosen"))).all()) == 1


async def test_a_token_is_made_once_and_its_form_has_no_fault(sign_in: SignIn, town: Town) -> None:
    tab, _ = await sign_in(town.people["ada"]["username"])
    developers = await opened(tab, ApiTokensState, town.server_id, "developers")
    developers.open_form()
    developers.set_name("nightly")
    for _turn in range(2):
        await tab.run(developers.create())
    assert (developers.token != "", developers.fault_text, len(developers.rows)) == (True, "", 1)


async def test_another_browser_is_logged_out_once(sign_in: SignIn) -> None:
    tab, _ = await sign_in("ada")
    await sign_in("ada")
    mine = await tab.state(MyDataState)
    tab.go("/account")
    await tab.run(mine.load())
    (session,) = [one.id for one in mine.sessions if not one.current]
    for _turn in range(2):
        await tab.run(mine.sign_out(session))
    assert await tab.toast() == "Logged out: That browser is logged out."
    assert (await tab.state(ToastState)).number == 1
