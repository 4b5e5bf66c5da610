"""A server with one rule, the state of a tab of its configuration, and a filled-in rule form."""

from typing import Any, TypeVar

import pytest
import reflex as rx

from settings import settings
from state.core import watchers
from state.core.session import SessionState
from state.dashboard.server_page import ServerPageState
from state.rule_form.condition_draft import ConditionDraft
from state.rule_form.rule_form import RuleFormState
from tests.app.api.browsers import Browser, seeded_world
from tests.app.api.test_main_path import builders, known, rule, with_server
from tests.jobs.town import Town
from tests.state.conftest import SignIn, Tab

S = TypeVar("S", bound=rx.State)


async def with_rule(browser: Browser) -> dict[str, Any]:
    """Store a rule for the person's server and return it."""
    world = await seeded_world(settings().sandbox_url)
    server_id = await with_server(browser, builders(world))
    await known(world)
    answer = await browser.client.post("/api/verification-rules", json=rule(world, server_id))
    assert answer.status_code == 201, answer.text
    return answer.json()


async def opened(tab: Tab, kind: type[S], server_id: int, name: str, **query: object) -> S:
    """Open a tab of a server's configuration by its address, and return its state."""
    tab.go("/server-config", serverId=server_id, tab=name, **query)
    (await tab.state(SessionState)).visit += 1
    await tab.run((await tab.state(ServerPageState)).load())
    state: Any = await tab.state(kind)
    await tab.run(state.load())
    return state


@pytest.fixture
async def form(town: Town, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch) -> Tab:
    """A tab with the form filled in: one token of the town's collection, without a name or a role."""

    async def is_open(_: str) -> bool:
        return True

    monkeypatch.setattr(watchers, "is_open", is_open)
    tab, _ = await sign_in(town.people["ada"]["username"])
    tab.go("/add-verification-rule", serverId=town.server_id)
    (await tab.state(ServerPageState)).server_id = town.server_id
    rule = await tab.state(RuleFormState)
    rule._clear()
    rule._fill_in(ConditionDraft(contract=town.contract, chain="base", collection=""))
    rule._changed()
    return tab
