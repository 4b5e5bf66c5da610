"""Links chosen by strangers: what is fetched, and the attacks that fail."""

import asyncio
import gzip
import ipaddress
import os
import ssl
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import httpcore
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateways.transport.errors import (
    NotThere,
    ProviderBusy,
    ProviderConfused,
    ProviderDown,
    ProviderError,
    ProviderRefused,
)
from gateways.transport.public_addresses import is_public, resolve
from gateways.transport.safe_fetch import Fetcher, LinkForbidden
from tests.gateways.transport.certificates import HOST
from tests.gateways.transport.certificates import certificate as certificate
from tests.gateways.wire import Wire

PUBLIC, OTHER_PUBLIC = "93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"


class Internet(httpcore.AsyncNetworkBackend):
    """An internet on one machine: every public address is our own local server, and each connection is recorded."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.names: dict[str, Sequence[str]] = {HOST: (PUBLIC,)}
        self.dialled: list[tuple[str, int]] = []
        self.broken: set[str] = set()
        self._real = cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())

    async def lookup(self, host: str, port: int) -> Sequence[str]:
        try:
            return (str(ipaddress.ip_address(host)),)
        except ValueError:
            return self.names.get(host, ())

    async def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:  # fmt: skip
        self.dialled.append((host, port))
        if host in self.broken:
            raise httpcore.ConnectError("nobody there")
        return await self._real.connect_tcp("127.0.0.1", self.port, timeout, local_address, socket_options)

    async def sleep(self, seconds: float) -> None:
        await self._real.sleep(seconds)


@pytest.fixture
async def site(certificate: Path) -> AsyncIterator[Wire]:
    """A server on that internet, over TLS."""
    told = Wire()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", told.handle)
    server = TestServer(app)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    await server.start_server(ssl=context, shutdown_timeout=0.1)
    told.url = str(server.port)
    yield told
    await server.close()


@pytest.fixture
def internet(site: Wire) -> Internet:
    return Internet(int(site.url))


@pytest.fixture
async def new_fetcher(internet: Internet, certificate: Path) -> AsyncIterator[Callable[..., Fetcher]]:
    made: list[Fetcher] = []

    def fetcher(**options: Any) -> Fetcher:
        trust = ssl.create_default_context(cafile=str(certificate))
        usual = {
            "agent": "Tests",
            "lookup": internet.lookup,
            "network": internet,
            "certificates": trust,
            "deadline": 2.0,
        }
        made.append(Fetcher(**(usual | options)))
        return made[-1]

    yield fetcher
    for one in made:
        await one.close()


@pytest.fixture
def fetcher(new_fetcher: Callable[..., Fetcher]) -> Fetcher:
    return new_fetcher()


async def test_a_public_https_link_is_fetched_without_any_credential(
    fetcher: Fetcher, site: Wire, internet: Internet
) -> None:
    site.says(web.json_response({"name": "Cat"}, headers={"Set-Cookie": "a=b"}))
    assert await fetcher.get(f"https://{HOST}/cat 1?x=\u00e9#top") == b'{"name": "Cat"}'
    assert await fetcher.get(f"https://{HOST}/2") == b'{"name": "Cat"}'
    assert [one.path for one in site.asked] == ["/cat%201?x=%C3%A9", "/2"]
    for one in site.asked:
        assert one.headers["Host"] == HOST
        assert not {"Cookie", "Authorization", "Referer"} & set(one.headers)
    assert set(internet.dialled) == {(PUBLIC, 443)}


@pytest.mark.parametrize(
    "link",
    [
        f"http://{HOST}/1", f"https://{HOST}:8443/1", f"https://{HOST}:22/", f"https://me:secret@{HOST}/1",
        f"https://me@{HOST}/1", f"ftp://{HOST}/1", "file:///etc/passwd", "gopher://x/1", "https:///1", "https://",
        "//cats.example/1", "/1", "cats.example/1", "", f"https://{HOST}/{'x' * 5000}", "https://[::1", "https://a b/",
        "https://\u2603\ufdd0.example/",
    ],
)  # fmt: skip
async def test_nothing_is_sent_for_a_link_of_another_kind(fetcher: Fetcher, internet: Internet, link: str) -> None:
    with pytest.raises(ProviderError) as caught:
        await fetcher.get(link)
    assert isinstance(caught.value, LinkForbidden | ProviderDown)
    assert "secret" not in str(caught.value)
    assert internet.dialled == []


INSIDE = [
    "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.9.9", "192.168.1.1", "169.254.169.254", "100.64.0.1",
    "168.63.129.16",
    "192.0.0.8", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1",
    "255.255.255.255", "::1", "::", "::ffff:127.0.0.1", "::ffff:93.184.215.14", "::127.0.0.1", "fe80::1",
    "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1", "2001::1", "2002:7f00:1::",
    "64:ff9b::7f00:1", "64:ff9b:1::1", "100::1", "3fff::1", "5f00::1", "nonsense", "",
]  # fmt: skip


@pytest.mark.parametrize("address", INSIDE)
def test_an_address_inside_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", [PUBLIC, OTHER_PUBLIC, "1.1.1.1", "2001:4860:4860::8888", "2a00:1450::1"])
def test_an_address_of_the_open_internet_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "::1", "fd00:ec2::254", "::ffff:10.0.0.1"])
async def test_no_name_and_no_number_leads_inside(fetcher: Fetcher, internet: Internet, address: str) -> None:
    internet.names |= {"inside.example": (address,), "both.example": (PUBLIC, address)}
    literal = f"[{address}]" if ":" in address else address
    for host in ("inside.example", "both.example", literal):
        with pytest.raises(LinkForbidden, match="not a public one"):
            await fetcher.get(f"https://{host}/1")
    assert internet.dialled == []


@pytest.mark.parametrize("host", ["localhost", "2130706433", "0x7f.1", "0177.0.0.1", "127.1"])
async def test_the_machines_own_names_and_odd_numbers_resolve_to_what_is_refused(host: str) -> None:
    found = await resolve(host, 443)
    assert all(not is_public(address) for address in found)


async def test_a_name_is_looked_up_once_for_a_connection_and_that_address_is_dialled(
    new_fetcher: Callable[..., Fetcher], site: Wire, internet: Internet
) -> None:
    answers = [(PUBLIC,), ("127.0.0.1",)]
    asked: list[str] = []

    async def twice(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return answers.pop(0)

    fetcher = new_fetcher(lookup=twice)
    site.says(web.Response(body=b"{}", headers={"Connection": "close"}))
    assert await fetcher.get(f"https://{HOST}/1") == b"{}"
    assert (asked, internet.dialled) == ([HOST], [(PUBLIC, 443)])
    with pytest.raises(LinkForbidden):
        await fetcher.get(f"https://{HOST}/1")
    assert internet.dialled == [(PUBLIC, 443)]


def to(target: str, status: int = 302) -> web.Response:
    return web.Response(status=status, headers={"Location": target})


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_to_what_is_public_is_followed(
    fetcher: Fetcher, site: Wire, internet: Internet, status: int
) -> None:
    internet.names["b.example"] = (OTHER_PUBLIC,)
    site.says(to("https://b.example/2", status), to("/3#x", status), web.Response(body=b"there"))
    assert await fetcher.get(f"https://{HOST}/1") == b"there"
    assert [(one.headers["Host"], one.path) for one in site.asked] == [
        (HOST, "/1"), ("b.example", "/2"), ("b.example", "/3"),
    ]  # fmt: skip
    assert set(internet.dialled) == {(PUBLIC, 443), (OTHER_PUBLIC, 443)}


@pytest.mark.parametrize(
    "target",
    [
        "https://inside.example/", "https://127.0.0.1/", "https://[::1]/", "http://cats.example/", "//inside.example/x",
        "https://cats.example:8443/", "https://me:pw@cats.example/", "file:///etc/passwd", "ipfs://x",
    ],
)  # fmt: skip
async def test_a_redirect_gets_nowhere_that_a_link_does_not(
    fetcher: Fetcher, site: Wire, internet: Internet, target: str
) -> None:
    internet.names["inside.example"] = ("10.0.0.1",)
    site.says(to(target), web.Response(body=b"inside"))
    with pytest.raises(LinkForbidden):
        await fetcher.get(f"https://{HOST}/1")
    assert len(site.asked) == 1


@pytest.mark.parametrize(
    "link",
    [
        "https://discord.com/api/v10/users/@me", "https://DISCORD.com./api/v10/users/@me",
        "https://canary.discord.com/api", "https://discordapp.com/api/v6/gateway/bot", "https://discord\u3002com/api",
    ],
)  # fmt: skip
async def test_no_link_and_no_redirect_leads_to_discord_which_would_ban_us_for_refused_requests(
    fetcher: Fetcher, site: Wire, internet: Internet, link: str
) -> None:
    names = ("discord.com", "discord.com.", "canary.discord.com", "discordapp.com")
    internet.names |= dict.fromkeys(names, (OTHER_PUBLIC,))
    site.says(to(link))
    with pytest.raises(LinkForbidden, match="Discord"):
        await fetcher.get(link)
    with pytest.raises(LinkForbidden, match="Discord"):
        await fetcher.post(link, b"{}")
    with pytest.raises(LinkForbidden, match="Discord"):
        await fetcher.deliver(link, b"{}", {})
    with pytest.raises(LinkForbidden, match="Discord"):
        await fetcher.get(f"https://{HOST}/1.json")
    assert {host for host, _port in internet.dialled} == {PUBLIC}
    internet.names |= dict.fromkeys(("notdiscord.com", "b.example"), (OTHER_PUBLIC,))
    site.says(to("https://b.example/discord.com"), web.Response(body=b"there"))
    assert await fetcher.get(f"https://{HOST}/2.json") == b"there"


@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        ([to("/again")], ProviderConfused),
        ([to("")], ProviderConfused),
        ([to("https://[::1")], ProviderConfused),
        ([web.Response(status=304)], ProviderConfused),
        ([web.Response(status=206, body=b"{}")], ProviderConfused),
        ([web.Response(status=404)], NotThere),
        ([web.Response(status=410)], NotThere),
        ([web.Response(status=403)], ProviderRefused),
        ([web.Response(status=503)], ProviderDown),
        ([web.Response(status=429, headers={"Retry-After": "9"})], ProviderBusy),
        (["close"], ProviderDown),
        (["hang"], ProviderDown),
    ],
)
async def test_every_other_answer_is_an_error_named_for_the_host(
    new_fetcher: Callable[..., Fetcher], site: Wire, answers: list[Any], kind: type[ProviderError]
) -> None:
    site.says(*answers)
    with pytest.raises(ProviderError) as caught:
        await new_fetcher(deadline=0.5 if "hang" in answers else 10.0).get(f"https://{HOST}/1?secret=1")
    assert type(caught.value) is kind
    assert caught.value.provider == HOST
    assert "secret" not in str(caught.value)
    assert len(site.asked) <= 4


async def test_a_host_that_is_not_there_and_one_that_takes_no_connection_are_down(
    fetcher: Fetcher, internet: Internet
) -> None:
    internet.broken.add(PUBLIC)
    for host in (HOST, "nowhere.example"):
        with pytest.raises(ProviderDown):
            await fetcher.get(f"https://{host}/1")


async def test_the_next_of_a_hosts_addresses_is_tried(fetcher: Fetcher, site: Wire, internet: Internet) -> None:
    internet.names[HOST] = (OTHER_PUBLIC, PUBLIC)
    internet.broken.add(OTHER_PUBLIC)
    site.says(web.Response(body=b"{}"))
    assert await fetcher.get(f"https://{HOST}/1") == b"{}"


async def test_a_certificate_for_somebody_else_is_not_believed(
    fetcher: Fetcher, site: Wire, internet: Internet
) -> None:
    internet.names["other.example"] = (PUBLIC,)
    site.says(web.Response(body=b"{}"))
    with pytest.raises(ProviderDown):
        await fetcher.get("https://other.example/1")
    assert site.asked == []


def packed(body: bytes, packing: str, content: bytes | None = None) -> web.Response:
    return web.Response(body=gzip.compress(body) if content is None else content, headers={"Content-Encoding": packing})


async def test_what_is_packed_as_asked_for_is_unpacked(fetcher: Fetcher, site: Wire) -> None:
    site.says(packed(b"{}" * 400, "gzip"))
    assert await fetcher.get(f"https://{HOST}/1", largest=800) == b"{}" * 400


@pytest.mark.parametrize(
    "answer",
    [
        web.Response(body=b"x" * 1_001),
        packed(b"x" * 1_001, "gzip"),
        packed(b"x" * 900_000, "gzip"),
        packed(b"", "gzip", gzip.compress(b"x" * 500)[:-9]),
        packed(b"", "gzip", b"not packed at all"),
        packed(b"", "deflate", zlib.compress(b"x" * 900_000)),
        packed(b"", "br", b"x"),
        packed(b"", "gzip, gzip", gzip.compress(gzip.compress(b"x"))),
    ],
    ids=["large", "large unpacked", "bomb", "cut", "not packed", "deflate", "br", "twice"],
)
async def test_what_is_too_large_or_packed_otherwise_is_not_kept(
    fetcher: Fetcher, site: Wire, answer: web.Response
) -> None:
    site.says(answer)
    with pytest.raises(ProviderConfused):
        await fetcher.get(f"https://{HOST}/1", largest=1_000)


async def test_a_stream_without_end_is_cut_at_the_limit(
    new_fetcher: Callable[..., Fetcher], internet: Internet, certificate: Path
) -> None:
    sent = 0

    async def drip(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(b"x" * 10_000)
            sent += 10_000
            await asyncio.sleep(0)

    app = web.Application()
    app.router.add_get("/1", drip)
    server = TestServer(app)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    await server.start_server(ssl=context, shutdown_timeout=0.1)
    internet.port = server.port or 0
    try:
        with pytest.raises(ProviderConfused, match="too large"):
            await new_fetcher(deadline=20.0).get(f"https://{HOST}/1", largest=100_000)
        assert sent < 10_000_000
    finally:
        await server.close()


async def test_what_an_operator_chose_may_be_of_this_machine_and_nothing_beside_it(
    new_fetcher: Callable[..., Fetcher], server: Wire
) -> None:
    server.says(web.Response(body=b"{}"))
    port = server.url.rpartition(":")[2]
    fetcher = new_fetcher(trusted=[f"http://127.0.0.1:{port}/ipfs"], network=None, lookup=resolve)
    for path in ("/ipfs", "/ipfs/x?y", "/ipfs/x%20y"):
        assert await fetcher.get(f"http://127.0.0.1:{port}{path}") == b"{}"
    beside = ("/", "/x", "/ipfsx", "/ipfs/../x", "/ipfs/%2e%2e/x", "/ipfs/..%2fx", "/ipfs/..%5cx", "/ipfs/x/..%2f")
    for link in (
        *(f"http://127.0.0.1:{port}{path}" for path in beside), f"http://localhost:{port}/ipfs/x",
        f"https://127.0.0.1:{port}/ipfs/x", f"http://127.0.0.1:{int(port) + 1}/ipfs/x", "https://127.0.0.1/ipfs/x",
    ):  # fmt: skip
        with pytest.raises(ProviderError):
            await fetcher.get(link)
    assert len(server.asked) == 3


async def test_a_private_host_that_an_operator_chose_is_reached_below_the_chosen_link_only(
    new_fetcher: Callable[..., Fetcher], site: Wire, internet: Internet
) -> None:
    internet.names[HOST] = ("10.0.0.7",)
    fetcher = new_fetcher(trusted=[f"https://{HOST}/ipfs"])
    site.says(to("/admin"), web.Response(body=b"{}"))
    with pytest.raises(LinkForbidden):
        await fetcher.get(f"https://{HOST}/ipfs/x")
    assert await fetcher.get(f"https://{HOST}/ipfs/y") == b"{}"
    with pytest.raises(LinkForbidden):
        await fetcher.get(f"https://{HOST}/admin")
    assert [one.path for one in site.asked] == ["/ipfs/x", "/ipfs/y"]


async def test_a_question_with_a_body_is_asked_once_and_not_redirected(fetcher: Fetcher, site: Wire) -> None:
    site.says(web.Response(body=b"answer"), to("https://cats.example/2", 307))
    assert await fetcher.post(f"https://{HOST}/1", b'{"a":1}') == b"answer"
    assert (site.asked[0].method, site.asked[0].body) == ("POST", '{"a":1}')
    with pytest.raises(ProviderConfused):
        await fetcher.post(f"https://{HOST}/1", b"{}")
    assert len(site.asked) == 2


async def test_a_host_that_breaks_its_tls_gives_no_answer(
    certificate: Path, new_fetcher: Callable[..., Fetcher], internet: Internet
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        # A record that nobody has encrypted.
        os.write(writer.get_extra_info("socket").fileno(), b"\x17\x03\x03\x00\x20" + bytes(32))
        await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        internet.port = server.sockets[0].getsockname()[1]
        fetcher = new_fetcher()
        with pytest.raises(ProviderDown, match=f"^{HOST}: the connection was lost$"):
            await fetcher.get(f"https://{HOST}/1")
        with pytest.raises(ProviderDown, match="the connection was lost"):
            await fetcher.deliver(f"https://{HOST}/1", b"{}", {})
