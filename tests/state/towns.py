"""A server with one rule, and the state of a tab of its configuration, for the tests of its tabs."""

from typing import Any, TypeVar

import reflex as rx

from settings import settings
from state.dashboard.server_page import ServerPageState
from tests.app.api.browsers import Browser, seeded_world
from tests.app.api.test_main_path import builders, rule, with_server
from tests.state.conftest import Tab

S = TypeVar("S", bound=rx.State)


async def with_rule(browser: Browser) -> dict[str, Any]:
    """Store a rule for the person's server and return it."""
    world = await seeded_world(settings().sandbox_url)
    server_id = await with_server(browser, builders(world))
    answer = await browser.client.post("/api/verification-rules", json=rule(world, server_id))
    assert answer.status_code == 201, answer.text
    return answer.json()


async def opened(tab: Tab, kind: type[S], server_id: int, name: str, **query: object) -> S:
    """Open a tab of a server's configuration by its address, and return its state."""
    tab.go("/server-config", serverId=server_id, tab=name, **query)
    await tab.run((await tab.state(ServerPageState)).load())
    state: Any = await tab.state(kind)
    await tab.run(state.load())
    return state
