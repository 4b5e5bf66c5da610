"""The dashboard's numbers: after a failed read the choices still say what the charts show."""

from typing import Any

import pytest
import reflex as rx
from sqlalchemy.exc import OperationalError

from services.servers import analytics
from services.servers.servers import ServerView
from state.core import retry
from state.dashboard.analytics import EVERYWHERE, AnalyticsState
from state.dashboard.servers import DashboardState
from tests.state.conftest import SignIn
from tests.state.towns import with_rule


async def test_a_choice_that_could_not_be_read_is_taken_back(sign_in: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_: object, **__: object) -> Any:
        raise OperationalError("SELECT", {}, Exception("the server closed the connection"))

    tab, browser = await sign_in("ada")
    server = str((await with_rule(browser))["serverId"])
    tab.go("/dashboard")
    state = await tab.state(AnalyticsState)
    await tab.run(state.load())
    monkeypatch.setattr(retry, "RETRY_SECONDS", 0)
    with monkeypatch.context() as patched:
        patched.setattr(analytics, "history", away)
        for choice in (state.choose_server(server), state.choose_days(90)):
            with pytest.raises(OperationalError):
                await tab.run(choice)
            assert (state.server, state.days, state.busy) == (EVERYWHERE, 30, False)
    await tab.run(state.choose_server(server))
    await tab.run(state.choose_days(90))
    assert (state.server, state.days, state.busy) == (server, 90, False)


@pytest.mark.parametrize(
    ("bots", "has_bot"), [((), False), ((False, False), False), ((False, True), True), ((True, True), True)]
)
async def test_the_number_of_connected_servers_counts_those_with_the_bot_if_there_are_any(
    bots: tuple[bool, ...], has_bot: bool
) -> None:
    state = await rx.State().get_state(DashboardState)
    state._show([ServerView(str(at), at, "Cats", None, bot, True, 0, 0, (), 0) for at, bot in enumerate(bots, 1)])
    assert (len(state.cards), state.has_bot) == (len(bots), has_bot)
