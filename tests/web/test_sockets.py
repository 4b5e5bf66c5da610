"""The event socket over the wire: who may open it, and what becomes of everything that a stranger can say on it."""

import pytest
from websockets.exceptions import InvalidStatus

from tests.web.conftest import Web, sign_in
from tests.web.sockets import socket


async def test_a_socket_of_our_own_page_is_opened_and_greeted(web: Web) -> None:
    async with socket(web) as visitor:
        await visitor.until('"visitor"')
    async with socket(web, sign_in(web.url, "ada")) as ada:
        assert '"member"' in await ada.until('"member"')


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
