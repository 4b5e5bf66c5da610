"""ENS with the sandbox's registry, and the requests that services with names elsewhere can make us send."""

import json
import secrets
import tracemalloc
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web
from eth_abi.abi import encode

from gateways.evm.ens import LARGEST_REQUEST, UNIVERSAL_RESOLVER, EnsNames, NameInvalid, NameOffchain
from gateways.evm.rpc.node import Head, Node
from gateways.evm.rpc.pool import NodePool
from gateways.transport.errors import NotThere, ProviderDown, ProviderError
from gateways.transport.safe_fetch import Fetcher
from models import now
from tests.gateways.wire import Wire

OFFCHAIN = "556f1830"


@pytest.fixture
async def told(sandbox_url: str) -> AsyncIterator[Callable[..., Any]]:
    """A function that sets in the sandbox what a name resolves to, and the name that an address claims."""
    async with aiohttp.ClientSession() as session:

        async def tell(path: str, **body: Any) -> Any:
            async with session.post(f"{sandbox_url}/control/{path}", json=body) as answer:
                assert answer.status < 300, await answer.text()
                return await answer.json()

        yield tell


@pytest.fixture
async def names(sandbox_url: str) -> AsyncIterator[EnsNames]:
    pool = NodePool({"ethereum": [f"{sandbox_url}/{front}/ethereum" for front in ("rpc", "rpc2")]}, request_seconds=2)
    fetching = Fetcher(agent="tests")
    yield EnsNames(pool, fetching)
    await fetching.close()
    await pool.close()


async def carol(sandbox_url: str) -> str:
    async with aiohttp.ClientSession() as session, session.get(f"{sandbox_url}/control/world") as answer:
        people = (await answer.json())["users"]
    return next(one["wallets"]["evm"] for one in people if one["username"] == "carol").lower()


async def test_a_name_stands_for_an_address_in_whatever_letters_it_is_written(
    names: EnsNames, sandbox_url: str
) -> None:
    address = await carol(sandbox_url)
    for written in ("carol.eth", " Carol.ETH ", "ＣＡＲＯＬ.eth"):
        assert await names.resolve(written) == ("carol.eth", address)


async def test_what_has_no_record_is_not_there(names: EnsNames, told: Callable[..., Any]) -> None:
    with pytest.raises(NotThere):
        await names.resolve("nobody-at-all.eth")
    await told("chains/ethereum/name", name="empty.eth", address="0x" + "00" * 20)
    with pytest.raises(NotThere):
        await names.resolve("empty.eth")


@pytest.mark.parametrize(
    "written", ["carol", "car ol.eth", "саrol.eth", "carol..eth", "foo_bar.eth", ".eth", "a\u200db.eth"]
)
async def test_what_cannot_be_a_name_is_refused_before_anybody_is_asked(names: EnsNames, written: str) -> None:
    with pytest.raises(NameInvalid):
        await names.resolve(written)


async def test_a_primary_name_counts_only_when_it_stands_for_the_wallet_itself(
    names: EnsNames, told: Callable[..., Any], sandbox_url: str
) -> None:
    assert await names.primary(await carol(sandbox_url)) == "carol.eth"
    liar, odd = "0x" + secrets.token_hex(20), "0x" + secrets.token_hex(20)
    assert await names.primary(liar) is None
    await told("chains/ethereum/name", name="carol.eth", of=liar)
    assert await names.primary(liar) is None
    await told("chains/ethereum/name", name="Odd.eth", address=odd, of=odd)
    assert await names.primary(odd) is None


@pytest.mark.parametrize("kind", ["down", "429", "500", "empty", "zero", "malformed"])
async def test_a_fault_is_an_error_and_never_no_such_name(
    names: EnsNames, told: Callable[..., Any], kind: str, sandbox_url: str
) -> None:
    try:
        await told("faults", target="rpc:ethereum", kind=kind, seconds=60)
        assert (await names.resolve("carol.eth"))[1] == await carol(sandbox_url)
        await told("faults", target="rpc2:ethereum", kind=kind, seconds=60)
        with pytest.raises(ProviderError) as caught:
            await names.resolve("carol.eth")
        assert not isinstance(caught.value, NotThere)
    finally:
        for front in ("rpc", "rpc2"):
            await told("faults", target=f"{front}:ethereum", kind="500", seconds=0.000_001)


class Service:
    """A node whose universal resolver refers to another server, and that server; both are one local server."""

    def __init__(self, server: Wire, address: str) -> None:
        self.server, self.address = server, address

    def lookup(self, *urls: str, sender: str = UNIVERSAL_RESOLVER, asks: bytes = b"\x12\x34") -> web.Response:
        """Return the error by which a contract requests an off-chain lookup."""
        data = encode(
            ["address", "string[]", "bytes", "bytes4", "bytes"],
            [sender, list(urls), asks, bytes.fromhex("abcdef01"), b"\x99"],
        ).hex()
        error = {"code": 3, "message": "execution reverted", "data": f"0x{OFFCHAIN}{data}"}
        return web.Response(
            body=orjson.dumps({"jsonrpc": "2.0", "id": 1, "error": error}), content_type="application/json"
        )

    def answers(self) -> web.Response:
        """Return the contract's final answer."""
        record = bytes(12) + bytes.fromhex(self.address[2:])
        said = encode(["bytes", "address"], [record, "0x" + "77" * 20]).hex()
        return web.Response(
            body=orjson.dumps({"jsonrpc": "2.0", "id": 1, "result": f"0x{said}"}), content_type="application/json"
        )

    def tells(self, data: str) -> web.Response:
        return web.Response(body=orjson.dumps({"data": data}), content_type="application/json")


@pytest.fixture
async def service(server: Wire, monkeypatch: pytest.MonkeyPatch) -> Service:
    async def head(_: Node, not_before_block: int = 0) -> Head:
        return Head(100, now())

    monkeypatch.setattr(Node, "head", head)
    return Service(server, "0x" + secrets.token_hex(20))


@pytest.fixture
async def trusting(service: Service) -> AsyncIterator[EnsNames]:
    """A resolver that follows lookups to the test's own server, which only an operator's setting can allow."""
    pool, fetching = NodePool({"ethereum": [service.server.url]}), Fetcher(agent="t", trusted=[service.server.url])
    yield EnsNames(pool, fetching)
    await fetching.close()
    await pool.close()


async def test_a_name_that_is_kept_elsewhere_is_looked_up_there_and_brought_back(
    trusting: EnsNames, service: Service
) -> None:
    url = f"{service.server.url}/{{sender}}/{{data}}.json"
    service.server.says(service.lookup("ftp://nowhere", url), service.tells("0xbeef"), service.answers())
    assert await trusting.resolve("kept.elsewhere.eth") == ("kept.elsewhere.eth", service.address)
    asked, back = service.server.asked[1:]
    assert (asked.method, asked.path) == ("GET", f"/{UNIVERSAL_RESOLVER}/0x1234.json")
    call = json.loads(back.body)["params"][0]
    assert call["to"] == UNIVERSAL_RESOLVER
    assert call["data"] == "0xabcdef01" + encode(["bytes", "bytes"], [b"\xbe\xef", b"\x99"]).hex()


async def test_a_service_without_a_place_for_the_data_is_posted_to(trusting: EnsNames, service: Service) -> None:
    service.server.says(service.lookup(f"{service.server.url}/ask"), service.tells("0x01"), service.answers())
    await trusting.resolve("kept.elsewhere.eth")
    asked = service.server.asked[1]
    assert (asked.method, json.loads(asked.body)) == ("POST", {"data": "0x1234", "sender": UNIVERSAL_RESOLVER})


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:1/{data}", "https://127.0.0.1/{data}", "https://169.254.169.254/{data}", "https://localhost/{data}",
     "file:///etc/passwd", "x-batch-gateway:true", "https://[::1]/{data}", "https://10.0.0.1/{data}"],
)  # fmt: skip
async def test_a_contract_cannot_send_us_to_what_is_not_public(service: Service, server: Wire, url: str) -> None:
    pool, fetching = NodePool({"ethereum": [server.url]}), Fetcher(agent="t")
    server.says(service.lookup(url), service.answers())
    with pytest.raises(NameOffchain):
        await EnsNames(pool, fetching).resolve("kept.elsewhere.eth")
    assert len(server.asked) == 1
    await fetching.close()
    await pool.close()


async def test_a_lookup_for_another_contract_or_without_end_is_refused(trusting: EnsNames, service: Service) -> None:
    service.server.says(service.lookup(f"{service.server.url}/ask", sender="0x" + "55" * 20))
    with pytest.raises(ProviderError, match="another contract"):
        await trusting.resolve("kept.elsewhere.eth")
    again = service.lookup(f"{service.server.url}/ask")
    service.server.says(*[again, service.tells("0x01")] * 9)
    with pytest.raises(NameOffchain, match="from one service to the next"):
        await trusting.resolve("kept.elsewhere.eth")


async def test_a_link_that_would_be_many_times_as_long_as_the_lookup_is_never_built(
    trusting: EnsNames, service: Service
) -> None:
    bomb = f"{service.server.url}/" + "{data}" * 5_000
    tracemalloc.start()
    try:
        service.server.says(service.lookup(bomb, asks=b"\x12" * 20_000))
        with pytest.raises(NameOffchain):
            await trusting.resolve("kept.elsewhere.eth")
        assert tracemalloc.get_traced_memory()[1] < 50_000_000, "the link would have 200 MB"
    finally:
        tracemalloc.stop()
    assert len(service.server.asked) == 1


async def test_a_request_for_a_lookup_is_not_read_beyond_its_limit(trusting: EnsNames, service: Service) -> None:
    service.server.says(service.lookup(f"{service.server.url}/ask", asks=b"\x12" * LARGEST_REQUEST))
    with pytest.raises(NameOffchain, match="too large"):
        await trusting.resolve("kept.elsewhere.eth")
    assert len(service.server.asked) == 1


async def test_a_name_that_is_longer_than_names_are_is_none(trusting: EnsNames, service: Service) -> None:
    for name, expected in (("a." * 126 + "eth", True), ("a." * 127 + "eth", False)):
        said = encode(["string", "address", "address"], [name, "0x" + "77" * 20, "0x" + "77" * 20]).hex()
        answer = orjson.dumps({"jsonrpc": "2.0", "id": 1, "result": f"0x{said}"})
        service.server.says(web.Response(body=answer, content_type="application/json"))
        assert await trusting.primary(service.address) == (name if expected else None)


async def test_a_service_that_fails_is_no_verdict_on_the_name(trusting: EnsNames, service: Service) -> None:
    service.server.says(service.lookup(f"{service.server.url}/ask"), web.Response(status=500))
    with pytest.raises(NameOffchain):
        await trusting.resolve("kept.elsewhere.eth")
    failed = {"code": 3, "message": "execution reverted", "data": "0x01800152" + "00" * 64}
    service.server.says(web.Response(body=orjson.dumps({"jsonrpc": "2.0", "id": 1, "error": failed})))
    with pytest.raises(ProviderDown):
        await trusting.resolve("kept.elsewhere.eth")
