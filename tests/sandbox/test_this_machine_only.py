"""Nobody outside this machine reaches the sandbox: its addresses, its host names, and the pages that may call it.

Cookies ignore ports, so browsers send it the product's cookies too: it neither reads nor keeps them.
"""

import ast
import logging
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from tests.sandbox.conftest import CALLBACK, Outside

ROOT = Path(__file__).resolve().parents[2]
FOREIGN = (
    {"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}, {"Origin": "null"},
    {"Origin": "http://[localhost"},
)  # fmt: skip
"""What a browser sends with a request of another site's page, and an origin that no browser sends."""


def family(port: int) -> list[psutil.Process]:
    """Return the sandbox that listens on a port, and all processes that it has started."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if any(one.laddr.port == port for one in listening(process)):
                return [process, *process.children(recursive=True)]
    pytest.fail("nobody listens on the sandbox's port")


def listening(process: psutil.Process) -> list[Any]:
    """Return the sockets on which a process accepts connections."""
    return [one for one in process.net_connections("tcp") if one.status == psutil.CONN_LISTEN]


def test_it_and_its_nodes_listen_on_loopback_alone(sandbox_url: str) -> None:
    found = [one.laddr.ip for process in family(urlsplit(sandbox_url).port or 0) for one in listening(process)]
    assert len(found) > 5, "itself and a node for each chain"
    assert [address for address in found if not ip_address(address).is_loopback] == []


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:3210", "localhost.evil.example", "127.0.0.1.nip.io", "0.0.0.0", "2130706433", "[::]",
     "127.0.0.1@evil.example", "localhost:3210:80", "a[::1]"],
)  # fmt: skip
def test_under_a_name_that_is_not_this_machines_it_answers_nothing(sandbox_url: str, host: str) -> None:
    for path in ("/control/world", "/console", "/discord/api/v10/users/@me"):
        answer = httpx.get(f"{sandbox_url}{path}", headers={"Host": host}, trust_env=False)
        assert answer.status_code in {400, 421}, path
        assert "users" not in answer.text


@pytest.mark.parametrize("told", FOREIGN)
def test_another_sites_page_cannot_steer_it(sandbox_url: str, told: dict[str, str]) -> None:
    for path in ("/control/faults", "/console/act"):
        answer = httpx.post(f"{sandbox_url}{path}", headers=told, content="{}", trust_env=False)
        assert answer.status_code == 403, path


@pytest.mark.parametrize("told", FOREIGN)
def test_another_sites_page_changes_nothing_at_any_provider_and_opens_no_socket(
    sandbox_url: str, told: dict[str, str]
) -> None:
    for path in ("/rpc/base", "/solana", "/discord/oauth2/authorize", "/opensea/0x" + "5e" * 20):
        assert httpx.post(f"{sandbox_url}{path}", headers=told, content="{}", trust_env=False).status_code == 403, path
    socket = {
        "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }  # fmt: skip
    for path in ("/rpc/base", "/rpc2/base", "/discord/gateway"):
        assert httpx.get(f"{sandbox_url}{path}", headers=told | socket, trust_env=False).status_code == 403, path


def test_no_page_finds_a_node_that_obeys_everybody(sandbox_url: str) -> None:
    """A node accepts any Host, and any Origin of a WebSocket: so its address is one that nobody can guess."""
    nodes = [
        one.laddr
        for process in family(urlsplit(sandbox_url).port or 0)[1:]
        for one in listening(process)
        if "anvil" in process.name()
    ]
    assert len(nodes) > 5, "one for each chain"
    assert len({address.ip for address in nodes} - {"127.0.0.1"}) == len(nodes), "each has one of its own"
    told = {"Host": "evil.example", "Origin": "http://evil.example"}
    for address in nodes:
        asked = told | {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
        answer = httpx.options(f"http://{address.ip}:{address.port}", headers=asked, trust_env=False)
        assert answer.status_code == 405
        assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_the_products_cookies_are_kept_nowhere_and_come_back_in_no_answer(
    discord: Outside, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "s3cret-Value_0123456789abcdefghijklmnopqrstuvw"
    cookies = "; ".join(f"{name}={secret}" for name in ("hf_session", "hf_login", "__Host-hf_session"))
    told = {"Cookie": cookies, "x-session-id": secret, "Referer": f"http://localhost:3000/dashboard?session={secret}"}
    consent = {
        "client_id": discord.settings["DISCORD_CLIENT_ID"], "scope": "identify", "response_type": "code",
        "redirect_uri": CALLBACK, "state": "abc",
    }  # fmt: skip
    answers = [
        await discord.http.get("/discord/oauth2/authorize", params={**consent, **more}, headers=told)
        for more in ({}, {"as": "ada"}, {"prompt": "none"}, {"client_id": "1"})
    ]
    for path in ("/console", "/control/world", "/discord/api/v10/users/@me", "/nothing", "/discord/cdn/icons/1/a.png"):
        answers.append(await discord.http.get(path, headers=told))
    for path in ("/console/act", "/control/faults", "/discord/api/v10/oauth2/token"):
        answers.append(await discord.http.post(path, headers=told, content="{}"))
    noted = await discord.http.get("/control/requests?since=0")
    kept = [path.read_bytes() for path in discord.sandbox.data.rglob("*") if path.is_file()]
    assert noted.json()["requests"], "it does note who came"
    assert len(kept) > 1
    assert len({answer.status_code for answer in answers}) > 3
    for answer in (*answers, noted):
        assert secret not in answer.text + str(answer.headers), answer.request.url
    assert not any(secret.encode() in content for content in kept)
    assert secret not in caplog.text + "".join(capfd.readouterr())


def test_it_reads_no_cookie_but_its_own() -> None:
    read: list[str] = []
    for path in sorted((ROOT / "sandbox").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr == "cookies":
                read.append(path.relative_to(ROOT).as_posix())
        assert "hf_" not in path.read_text(), path
    assert read == ["sandbox/discord/oauth/authorize.py"], "who it was that agreed last, under /discord"
