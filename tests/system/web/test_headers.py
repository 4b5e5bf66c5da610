"""The headers of every answer, over the wire: each one is a protection."""

import base64
import hashlib
import re
import socket

import httpx
import pytest

from tests.system.web.conftest import Web, sign_in

PLACES = (
    "/",
    "/login",
    "/dashboard",
    "/nothing/here",
    "/favicon.svg",
    "/robots.txt",
    "/api/servers",
    "/api/none",
    "/health",
)
INLINE = re.compile(r"<script(?![^>]*\bsrc=)[^>]*>(.*?)</script>", re.S)


def policy_of(answer: httpx.Response) -> dict[str, list[str]]:
    """Return the content security policy by directive."""
    parts = (part.split() for part in answer.headers["content-security-policy"].split(";"))
    return {words[0]: words[1:] for words in parts}


@pytest.mark.parametrize("path", PLACES)
def test_every_answer_says_how_it_may_be_used(web: Web, path: str) -> None:
    answer = httpx.get(web.url + path)
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["referrer-policy"] == "strict-origin-when-cross-origin"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert "camera=()" in answer.headers["permissions-policy"]
    assert "access-control-allow-origin" not in answer.headers


def test_no_other_site_reads_our_answers(web: Web) -> None:
    for path in ("/", "/api/servers"):
        answer = httpx.get(web.url + path, headers={"Origin": "https://evil.example"})
        allowed = answer.headers.get("access-control-allow-origin")
        assert allowed in {None, web.url}, path


@pytest.mark.parametrize("path", ["/", "/login", "/dashboard", "/nothing/here"])
def test_a_page_runs_its_own_scripts_only(web: Web, path: str) -> None:
    answer = httpx.get(web.url + path)
    policy = policy_of(answer)
    assert policy["default-src"] == ["'none'"]
    assert policy["frame-ancestors"] == ["'none'"]
    assert policy["base-uri"] == ["'none'"]
    assert policy["form-action"] == ["'self'"]
    assert policy["connect-src"] == ["'self'", web.url.replace("http", "ws", 1)]
    scripts = INLINE.findall(answer.text)
    hashes = {f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in scripts}
    assert set(policy["script-src"]) == {"'self'", *hashes}, "nothing inline but what the page has, and no eval"
    assert not re.search(r"<[^>]+\son\w+\s*=", answer.text), "no handler in an attribute"


def test_what_a_call_answers_can_do_nothing_and_is_kept_nowhere(web: Web) -> None:
    session = sign_in(web.url, "ada")
    for path in ("/api/auth/user", "/api/servers", "/api/me/export", "/api/wallet-verifications"):
        answer = httpx.get(web.url + path, headers={"x-session-id": session}, timeout=30)
        assert answer.status_code == 200, answer.text
        assert answer.headers["cache-control"] == "no-store"
        assert policy_of(answer)["default-src"] == ["'none'"]
        assert policy_of(answer)["frame-ancestors"] == ["'none'"]


def test_a_page_of_somebody_signed_in_is_kept_nowhere(web: Web) -> None:
    answer = httpx.get(web.url, headers={"Cookie": f"hf_session={sign_in(web.url, 'ada')}"})
    assert 'data-audience="member"' in answer.text
    assert answer.headers["cache-control"] == "private, no-store"


@pytest.mark.parametrize(
    "path",
    [
        "/%00",
        "/favicon.ico%00.js",
        "/" + "a" * 300,
        "/a" * 3_000,
        "/dashboard/server/" + "9" * 300,
        "/%0A",
        "/login%0A",
    ],
)
def test_an_address_that_no_file_can_have_is_a_page_that_is_not_there(web: Web, path: str) -> None:
    before = len(web.logged())
    answer = httpx.get(web.url + path)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "Traceback" not in web.logged()[before:]


@pytest.mark.parametrize("path", ["/" + "a/" * 5_000, "/assets/" + "a/" * 5_000, "/api/status?" + "a&" * 5_000])
def test_an_address_longer_than_any_of_ours_is_refused(web: Web, path: str) -> None:
    answer = httpx.get(web.url + path)
    assert (answer.status_code, answer.headers["content-type"]) == (414, "application/json")
    assert policy_of(answer)["default-src"] == ["'none'"]


@pytest.mark.parametrize("path", ["/api/a%0Ab", "/api/servers/%0A", "/api/auth/user%0A"])
def test_a_call_with_a_line_break_in_its_path_is_a_call_that_is_not_there(web: Web, path: str) -> None:
    answer = httpx.get(web.url + path, headers={"x-session-id": sign_in(web.url, "ada")})
    assert answer.status_code == 404, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["message"]
    assert policy_of(answer)["default-src"] == ["'none'"]


def test_a_malformed_chunk_is_a_problem_with_the_usual_headers(web: Web) -> None:
    before = len(web.logged())
    head = f"POST /api/auth/logout HTTP/1.1\r\nHost: localhost:{web.port}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
    with socket.create_connection(("127.0.0.1", web.port), timeout=30) as connection:
        connection.sendall(head.encode())
        answer = connection.recv(65_536).decode()
    assert answer.startswith("HTTP/1.1 400 "), answer
    assert '"message":"The request\'s body is malformed."' in answer
    assert "content-security-policy: " in answer.lower()
    assert "x-request-id: " in answer.lower()
    assert "Traceback" not in web.logged()[before:]


def test_nothing_secret_is_ever_in_the_log(web: Web) -> None:
    session = sign_in(web.url, "ada")
    httpx.get(f"{web.url}/?session={session}", headers={"Cookie": f"hf_session={session}"})
    httpx.get(f"{web.url}/api/servers?session={session}", headers={"x-session-id": session})
    assert session not in web.logged()


@pytest.mark.parametrize("path", ["/_foo", "/assets/nope.js", "/fonts/x"])
def test_a_file_that_is_missing_brings_no_page_without_a_policy(web: Web, path: str) -> None:
    answer = httpx.get(web.url + path)
    assert (answer.status_code, answer.content) == (404, b"")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_refused_host_is_answered_with_the_same_headers(web: Web) -> None:
    answer = httpx.get(web.url + "/dashboard", headers={"Host": "evil.example"})
    assert answer.status_code == 421
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
