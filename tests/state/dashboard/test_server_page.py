"""The server and the tab that an address names."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import reflex as rx

from components.pages import server_config
from models import Server, transaction
from services.core.actors import Actor
from services.core.errors import ProviderUnavailable
from services.runtime.task_cancellation import stop
from services.servers import servers
from state.core import retry
from state.dashboard.server_page import TABS, ServerPageState
from tests.app.api.browsers import Browser
from tests.state.conftest import SignIn, Tab
from tests.state.towns import with_rule


async def at(query: dict[str, str]) -> ServerPageState:
    root = rx.State()
    address = "/server-config?" + "&".join(f"{name}={value}" for name, value in query.items())
    root._update_router_vars({"pathname": "/server-config", "asPath": address, "query": query}, {})
    page = await root.get_state(ServerPageState)
    page._read_address()
    return page


@pytest.mark.parametrize(
    ("asked", "meant"), [("members", "members"), ("rules", "rules"), ("", "rules"), ("members;", "rules")]
)
async def test_the_tab_is_in_the_address_and_an_unknown_one_is_the_first(asked: str, meant: str) -> None:
    page = await at({"serverId": "7", "discordServerId": "77", "serverName": "Cats", "tab": asked})
    assert (page.server_id, page.discord_id, page.tab) == (7, "77", meant)
    page._name("77", "Cats")
    assert page.config_url == "/server-config?serverId=7&discordServerId=77&serverName=Cats"


async def test_a_servers_name_comes_from_the_service_and_never_from_a_link() -> None:
    page = await at({"serverId": "7", "serverName": "CALL 1-800-EVIL NOW"})
    assert page.name == ""
    page._name("77", "Cats")
    page._read_address()
    assert page.name == "Cats", "what the service said of this server stays"
    page = await at({"serverId": "999", "serverName": "EVIL"})
    assert (page.name, "EVIL" in page.config_url + page.add_rule_url) == ("", False)


async def test_after_a_load_that_the_next_tab_cancelled_the_server_is_read(
    sign_in: Callable[[str], Awaitable[tuple[Tab, Browser]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    tab, browser = await sign_in("ada")
    server_id = (await with_rule(browser))["serverId"]
    reading, really = asyncio.Event(), ServerPageState._read

    async def endless(page: ServerPageState, actor: Actor) -> None:
        reading.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(ServerPageState, "_read", endless)
    tab.go("/server-config", serverId=server_id, tab="rules")
    page = await tab.state(ServerPageState)
    loading = asyncio.create_task(tab.run(page.load()))
    await reading.wait()
    await stop(loading)
    monkeypatch.setattr(ServerPageState, "_read", really)
    tab.go("/server-config", serverId=server_id, tab="members")
    await tab.run(page.load())
    assert (page.loaded, page.tab, page.name) == (True, "members", "Base Builders")


async def test_a_server_that_cannot_be_read_is_not_called_missing_because_the_one_before_it_was(
    sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    tab, browser = await sign_in("ada")
    server_id = (await with_rule(browser))["serverId"]
    page = await tab.state(ServerPageState)
    tab.go("/server-config", serverId=server_id + 1)
    await tab.run(page.load())
    assert page.missing

    async def away(*_: object, **__: object) -> None:
        raise ProviderUnavailable("Discord does not answer.")

    async def unlisted(*_: object, **__: object) -> list[object]:
        return []

    monkeypatch.setattr(retry, "RETRY_SECONDS", 0)
    monkeypatch.setattr(servers, "get", away)
    monkeypatch.setattr(servers, "list_servers", unlisted)
    tab.go("/server-config", serverId=server_id)
    await tab.run(page.load())
    assert (page.missing, page.fault) == (False, "Discord does not answer.")


async def test_a_double_click_on_the_invite_opens_one_tab(sign_in: SignIn) -> None:
    tab, browser = await sign_in("ada")
    server_id = (await with_rule(browser))["serverId"]
    tab.go("/server-config", serverId=server_id)
    page = await tab.state(ServerPageState)
    await tab.run(page.load())
    assert [one is None for one in [*await tab.run(page.invite()), *await tab.run(page.invite())]] == [False, True]


@pytest.mark.parametrize("number", ["", "x", "-1", "1e3", "12345678901", "٣"])
async def test_what_is_no_id_of_ours_is_no_server(number: str) -> None:
    assert (await at({"serverId": number})).server_id == 0


def test_every_tab_of_the_bar_can_be_in_the_address() -> None:
    shown = [tab.key for tab in server_config.TABS]
    assert shown == [key for key in TABS if key in shown]
    assert all(tab.loads for tab in server_config.TABS), "a tab that nothing fills stays grey"
    assert len(server_config.LOAD) == len(set(server_config.LOAD)), "what is loaded twice is asked twice"
    for tab in server_config.TABS:
        assert set(tab.loads) <= set(server_config.LOAD), tab.key


def test_the_page_has_the_content_of_every_tab() -> None:
    made = str(server_config.server_config().render())
    for mark in ("No rules yet", "member-search", "activity-kind"):
        assert mark in made, mark


async def test_an_open_page_notices_that_the_bot_joins_and_leaves(sign_in: SignIn) -> None:
    tab, browser = await sign_in("ada")
    server_id = (await with_rule(browser))["serverId"]
    tab.go("/server-config", serverId=server_id)
    page = await tab.state(ServerPageState)
    await tab.run(page.load())
    assert page.bot_invited

    async def stored(*, there: bool) -> None:
        async with transaction() as db:
            (await db.get_one(Server, server_id)).bot_invited = there
        await tab.run(page.look())

    await stored(there=True)
    assert (page.bot_invited, page.bot_turns) == (True, 0)
    await stored(there=False)
    assert (page.bot_invited, page.bot_turns) == (False, 1)
    await stored(there=True)
    assert (page.bot_invited, page.bot_turns) == (True, 2), "the open tab is read again each time"
