"""The event socket over the wire: who may open it, and how each message of a stranger is handled."""

import asyncio
from uuid import uuid4

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from tests.system.web.conftest import Web, sign_in
from tests.system.web.sockets import BOOT, HELLO, socket

STATE = BOOT.rpartition(".")[0]


async def test_a_socket_of_our_own_page_is_opened_and_greeted(web: Web) -> None:
    async with socket(web) as visitor:
        await visitor.until('"visitor"')
    async with socket(web, sign_in(web.url, "ada")) as ada:
        assert '"member"' in await ada.until('"member"')


async def test_a_screen_is_told_to_notice_within_a_minute_that_its_connection_is_silent(web: Web) -> None:
    async with socket(web) as visitor:
        assert visitor.terms["pingInterval"] + visitor.terms["pingTimeout"] < 60_000


@pytest.mark.parametrize("origin", ["https://evil.example", "null"])
async def test_a_socket_of_another_sites_page_is_not_opened(web: Web, origin: str) -> None:
    with pytest.raises(InvalidStatus):
        async with socket(web, origin=origin):
            pytest.fail("it was opened")


@pytest.mark.parametrize("said", ["42/_event,[]", b"\x00", '42/_event,["connect",{"asgi.scope":{}}]'])
async def test_who_speaks_something_else_is_told_why_it_is_closed(web: Web, said: str | bytes) -> None:
    async with socket(web) as stranger:
        await stranger.send(said)
        code, reason = await stranger.closed()
    assert (code, bool(reason)) == (1008, True)


async def test_a_handler_that_does_not_exist_is_not_logged_with_all_that_came_with_it(web: Web) -> None:
    session = sign_in(web.url, "ada")
    before = len(web.logged())
    for name in ("state.os_system", "reflex___state____state.setvar"):
        async with socket(web, session) as stranger:
            await stranger.event(name, {"x": "marked"})
            assert await stranger.closed() == (1008, "there is no such handler")
    said = web.logged()[before:]
    assert "Traceback" not in said
    assert "marked" not in said
    assert session not in said


async def test_who_comes_to_somebodys_tab_does_not_get_what_it_shows_by_an_old_greeting(web: Web) -> None:
    tab = str(uuid4())
    async with socket(web, sign_in(web.url, "ada"), tab=tab) as ada:
        await ada.until('"ada"')
        await ada.event(f"{STATE}.state___account___profile____account_state.load", place="/account")
        await ada.until('"discord_username_rx_state_":"ada"')
    async with socket(web, hello=False, tab=tab) as other:
        await other.send(HELLO)
        await other.until(HELLO)
        await other.event(f"{STATE}.hydrate")
        assert await other.closed() == (1008, "there is no such handler")
        assert '"ada"' not in "".join(other.got)


async def test_what_browsers_report_makes_one_short_line_each_and_few_of_them(web: Web) -> None:
    before = len(web.logged())
    report = f"{STATE}.reflex___state____frontend_event_exception_state.handle_frontend_exception"
    async with socket(web) as stranger:
        for number in range(60):
            info = f"oops {number}\nERROR holdfast.bot: all is lost\r\x1b[2J" + "x" * 5_000
            await stranger.event(report, {"info": info, "component_stack": ""})
        await stranger.event(BOOT)
        await stranger.until('"is_hydrated_rx_state_":true')
    lines = web.logged()[before:].splitlines()
    told = [line for line in lines if "oops" in line]
    assert 0 < len(told) <= 30
    assert max(map(len, told)) < 1_200
    assert not any(line.startswith("ERROR") for line in lines)
    assert "\x1b" not in "".join(lines)


async def test_a_loop_behind_the_screen_looks_while_the_tab_has_its_socket(web: Web) -> None:
    before, session = len(web.logged()), sign_in(web.url, "ada")
    async with httpx.AsyncClient(base_url=web.url, headers={"x-session-id": session}, timeout=30) as client:
        guild = (await client.get("/api/discord/servers")).json()[0]
        added = await client.post("/api/servers", json={"discordServerId": guild["id"], "serverName": guild["name"]})
        assert added.status_code in {201, 409}, added.text
    async with socket(web, session) as ada:
        await ada.event(f"{STATE}.state___dashboard___servers____dashboard_state.watch", place="/dashboard")
        try:
            async with asyncio.timeout(60):
                await ada.until('"cards_rx_state_":[{')
        except TimeoutError:
            pytest.fail(f"nothing was looked at: {web.logged()[before:][-3_000:]}")
    assert "Traceback" not in web.logged()[before:]
