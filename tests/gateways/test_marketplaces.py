"""OpenSea profiles: a bio as it stands, or an error that is never mistaken for an empty one."""

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from gateways.errors import (
    NotThere,
    ProviderBusy,
    ProviderConfused,
    ProviderDown,
    ProviderError,
    ProviderRefused,
    Unauthorized,
)
from gateways.marketplaces import OpenSea
from tests.gateways.wire import Wire

ADDRESS = "0xd8da6bf26964af9d7eed9e03e53415d37aa96045"
ACCOUNT = {"address": "0xD8dA6BF26964aF9D7eEd9e03E53415D37aA96045", "username": "someuser", "bio": "holdfast:nelly"}


@pytest.fixture
async def opensea(server: Wire) -> AsyncIterator[OpenSea]:
    client = OpenSea(server.url + "/", "https://opensea.io", "key-1", deadline=1.0)
    yield client
    await client.close()


async def test_a_profile_has_the_address_the_answer_names(opensea: OpenSea, server: Wire) -> None:
    server.says(web.json_response(ACCOUNT))
    profile = await opensea.profile(ADDRESS)
    assert (profile.address, profile.username, profile.bio) == (ADDRESS, "someuser", "holdfast:nelly")
    assert server.asked[0].path == f"/api/v2/accounts/{ADDRESS}"
    assert server.asked[0].headers["x-api-key"] == "key-1"
    assert opensea.profile_url(ADDRESS) == f"https://opensea.io/{ADDRESS}"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (web.json_response({"errors": ["Account not found"]}, status=404), NotThere),
        (web.json_response({"errors": ["bad"]}, status=400), ProviderRefused),
        (web.json_response({"errors": ["key"]}, status=401), Unauthorized),
        (web.Response(status=500), ProviderDown),
        (web.Response(status=599), ProviderBusy),
        (web.json_response({"detail": "Request was throttled."}, status=429), ProviderBusy),
        ("close", ProviderDown),
        ("hang", ProviderDown),
        (web.Response(text='{"address": "0x'), ProviderConfused),
        (web.json_response([]), ProviderConfused),
        (web.json_response({"address": ADDRESS}), ProviderConfused),
        (web.json_response({"bio": "holdfast:nelly"}), ProviderConfused),
        (web.json_response({"address": "", "bio": "x"}), ProviderConfused),
        (web.json_response({"address": ADDRESS, "bio": None}), ProviderConfused),
        (web.Response(body=b"x" * 1_100_000), ProviderConfused),
        (web.Response(status=301, headers={"Location": "https://elsewhere.example"}), ProviderConfused),
    ],
)
async def test_what_is_no_profile_is_an_error(
    opensea: OpenSea, server: Wire, answer: Any, kind: type[ProviderError]
) -> None:
    server.says(answer)
    with pytest.raises(ProviderError) as caught:
        await opensea.profile(ADDRESS)
    assert type(caught.value) is kind
    assert "key-1" not in str(caught.value)


async def test_while_throttled_nothing_is_sent(opensea: OpenSea, server: Wire) -> None:
    server.says(web.Response(status=429, headers={"Retry-After": "120"}))
    with pytest.raises(ProviderBusy) as caught:
        await opensea.profile(ADDRESS)
    assert caught.value.retry_after == pytest.approx(120, abs=2)
    with pytest.raises(ProviderBusy):
        await opensea.profile(ADDRESS)
    assert len(server.asked) == 1


async def test_the_last_allowed_answer_is_used_and_then_nothing_is_sent(opensea: OpenSea, server: Wire) -> None:
    limits = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + 60)}
    server.says(web.json_response(ACCOUNT, headers=limits))
    assert (await opensea.profile(ADDRESS)).bio
    with pytest.raises(ProviderBusy) as caught:
        await opensea.profile(ADDRESS)
    assert caught.value.retry_after == pytest.approx(60, abs=3)
