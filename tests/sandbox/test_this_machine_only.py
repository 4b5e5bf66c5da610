"""Nobody beyond this machine reaches the sandbox: where it listens, under which names, and from whose pages."""

from contextlib import suppress
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import httpx
import psutil
import pytest


def family(port: int) -> list[psutil.Process]:
    """The sandbox that listens on a port, and all that it has started."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if any(one.laddr.port == port for one in listening(process)):
                return [process, *process.children(recursive=True)]
    pytest.fail("nobody listens on the sandbox's port")


def listening(process: psutil.Process) -> list[Any]:
    """The sockets on which a process waits for connections."""
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


@pytest.mark.parametrize(
    "told", [{"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}, {"Origin": "null"}]
)
def test_another_sites_page_cannot_steer_it(sandbox_url: str, told: dict[str, str]) -> None:
    for path in ("/control/faults", "/console/act"):
        answer = httpx.post(f"{sandbox_url}{path}", headers=told, content="{}", trust_env=False)
        assert answer.status_code == 403, path
