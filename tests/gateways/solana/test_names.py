"""Names on Solana by the resolver's answers: an owner, no owner, or unknown."""

from typing import Any

import pytest
from aiohttp import web

from gateways.evm.ens import NameInvalid
from gateways.solana.names import SolanaNames
from gateways.transport.errors import NotThere, ProviderBusy, ProviderConfused, ProviderDown, ProviderError
from gateways.transport.safe_fetch import Fetcher
from tests.gateways.wire import Wire

OWNER = "HKKp49qGWXd639QsuH7JiLijfVW5UtCVY4s1n2HANwEA"


def said(content: Any, status: int = 200) -> web.Response:
    return web.json_response(content, status=status)


async def resolved(server: Wire, name: str, answer: web.Response) -> tuple[str, str]:
    server.says(answer)
    fetcher = Fetcher(agent="tests", trusted=[f"{server.url}/resolve/"])
    try:
        return await SolanaNames(server.url + "/resolve/{name}", fetcher).resolve(name)
    finally:
        await fetcher.close()


@pytest.mark.parametrize(
    ("name", "normal", "path"),
    [
        ("bonfida.sol", "bonfida.sol", "/resolve/bonfida"),
        (" Bonfida.SOL ", "bonfida.sol", "/resolve/bonfida"),
        ("me.bonfida.sol", "me.bonfida.sol", "/resolve/me.bonfida"),
    ],
)
async def test_a_name_is_asked_for_without_its_ending(server: Wire, name: str, normal: str, path: str) -> None:
    assert await resolved(server, name, said({"s": "ok", "result": OWNER})) == (normal, OWNER)
    assert [one.path for one in server.asked] == [path]


@pytest.mark.parametrize(
    "name", ["bonfida", "bonfida.eth", ".sol", "a b.sol", "b\u043enfida.sol", "../x.sol", "a.b.c.sol"]
)
async def test_what_is_no_name_is_not_asked_for(server: Wire, name: str) -> None:
    with pytest.raises(NameInvalid):
        await resolved(server, name, said({}))
    assert server.asked == []


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (said({"s": "error", "result": "Domain not found"}), NotThere),
        (said({"s": "error", "result": "Domain not found"}, 404), NotThere),
        (said({"s": "error", "result": "Internal error"}), ProviderConfused),
        (said({"s": "ok", "result": None}), ProviderConfused),
        (said({"s": "ok", "result": "0x" + "5e" * 20}), ProviderConfused),
        (said([]), ProviderConfused),
        (web.Response(text="<html>", content_type="text/html"), ProviderConfused),
        (said({}, 502), ProviderDown),
        (web.Response(status=429, headers={"Retry-After": "3"}), ProviderBusy),
    ],
    ids=["nobody", "nobody, newly", "failed", "null", "no address", "a list", "a page", "502", "429"],
)
async def test_nobody_is_told_from_unknown(server: Wire, answer: web.Response, fault: type[ProviderError]) -> None:
    with pytest.raises(fault) as told:
        await resolved(server, "bonfida.sol", answer)
    assert isinstance(told.value, NotThere) is (fault is NotThere)


async def test_without_a_resolver_nothing_is_looked_up(server: Wire) -> None:
    names = SolanaNames("", Fetcher(agent="tests"))
    assert not names.on
    with pytest.raises(ProviderDown):
        await names.resolve("bonfida.sol")
