"""The dashboard's numbers: after a failed read the choices still say what the charts show."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from services.servers import analytics
from state.core import retry
from state.dashboard.analytics import EVERYWHERE, AnalyticsState
from tests.app.api.browsers import Browser
from tests.state.conftest import Tab
from tests.state.towns import with_rule

SignIn = Callable[[str], Awaitable[tuple[Tab, Browser]]]


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
