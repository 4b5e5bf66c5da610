"""Magic Eden: the tokens of a symbol, none for an unknown symbol, and an error for everything else."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from gateways.marketplaces.magiceden import MagicEden
from gateways.transport.errors import ProviderBusy, ProviderConfused, ProviderDown, ProviderError, Unauthorized
from tests.gateways.wire import Wire

MINT, OTHER = "HqRZKSAWHig98928x6jezNxUUmwY8VrHn1WF6NzeVU27", "5qiToEtKs4uf2CAxYxCM7RQXqbKK9Hd8XEe9XR7k2jG8"


@pytest.fixture
async def magiceden(server: Wire) -> AsyncIterator[MagicEden]:
    client = MagicEden(server.url + "/", deadline=10.0)
    yield client
    await client.close()


def entries(*mints: Any) -> web.Response:
    return web.json_response([{"tokenMint": mint, "price": 2.87} for mint in mints])


async def test_a_symbols_tokens_are_those_that_are_listed(magiceden: MagicEden, server: Wire) -> None:
    server.says(entries(MINT, OTHER, MINT, "nonsense", None))
    assert await magiceden.mints("magic/ticket") == (MINT, OTHER)
    assert [one.path for one in server.asked] == ["/v2/collections/magic%2Fticket/listings?offset=0&limit=20"]


async def test_where_nothing_is_listed_its_activities_tell(magiceden: MagicEden, server: Wire) -> None:
    server.says(entries(), entries(OTHER))
    assert await magiceden.mints("magicticket") == (OTHER,)
    assert server.asked[1].path == "/v2/collections/magicticket/activities?offset=0&limit=20"


@pytest.mark.parametrize(
    "answers", [[web.json_response({}, status=404)], [web.json_response({}, status=400)], [entries()]]
)
async def test_a_symbol_that_is_not_known_has_no_tokens(magiceden: MagicEden, server: Wire, answers: list[Any]) -> None:
    server.says(*answers)
    assert await magiceden.mints("none") == ()


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (web.Response(status=500), ProviderDown),
        (web.Response(status=429), ProviderBusy),
        (web.Response(status=403), Unauthorized),
        ("close", ProviderDown),
        (web.Response(text='[{"tokenMint": "'), ProviderConfused),
        (web.json_response({"tokenMint": MINT}), ProviderConfused),
        (web.json_response([{"tokenMint": 7}]), ProviderConfused),
    ],
)
async def test_everything_else_is_an_error(
    magiceden: MagicEden, server: Wire, answer: Any, kind: type[ProviderError]
) -> None:
    server.says(answer)
    with pytest.raises(ProviderError) as caught:
        await magiceden.mints("magicticket")
    assert type(caught.value) is kind
