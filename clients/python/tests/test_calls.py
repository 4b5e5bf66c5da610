"""The client: what it sends, where it never sends the token, and how it says what went wrong."""

import json
import socket
import socketserver
from collections.abc import Callable

import httpx
import pytest

from holdfast_client import Holdfast, HoldfastError

TOKEN = "hf_" + "a" * 43
Answer = Callable[[httpx.Request], httpx.Response]


def client(answer: Answer) -> Holdfast:
    return Holdfast("https://roles.example.org", TOKEN, transport=httpx.MockTransport(answer))


def test_a_call_has_its_address_its_query_its_body_and_the_token() -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json=[])

    with client(answer) as api:
        assert api.list_events(12, limit=5, role_id="7001") == []
        api.change_rule(7, {"state": "paused"})
        api.upload_address_list(12, "0xabc\n")
        api.list_trait_values("0xabc", "Fur/Hat ?#")
        api.create_rule({"serverId": 12}, idempotency_key="sheet-17")
        api.create_rule({"serverId": 12})
    read, changed, listed, traits, *created = asked
    assert str(read.url) == "https://roles.example.org/api/servers/12/events?limit=5&roleId=7001"
    assert {one.headers["authorization"] for one in asked} == {f"Bearer {TOKEN}"}
    assert (changed.method, json.loads(changed.content)) == ("PATCH", {"state": "paused"})
    assert (listed.headers["content-type"], listed.content) == ("text/csv", b"0xabc\n")
    assert traits.url.raw_path == b"/api/collection/0xabc/traits/Fur%2FHat%20%3F%23"
    assert [one.headers.get("idempotency-key") for one in created] == ["sheet-17", None]


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_no_value_leads_to_another_call(name: str) -> None:
    with client(lambda _: httpx.Response(200)) as api, pytest.raises(ValueError, match="cannot be a part"):
        api.download_address_list(12, name)


def test_a_file_is_a_text() -> None:
    with client(lambda _: httpx.Response(200, text="address\r\n", headers={"content-type": "text/csv"})) as api:
        assert api.download_members(12) == "address\r\n"


def test_an_empty_file_is_a_text_too() -> None:
    with client(lambda _: httpx.Response(200, text="", headers={"content-type": "text/csv; charset=utf-8"})) as api:
        assert api.download_members(12) == ""


def test_a_refusal_is_a_sentence_with_when_to_try_again() -> None:
    said = {"message": "Too often.", "left": 0}
    with (
        client(lambda _: httpx.Response(429, json=said, headers={"retry-after": "7"})) as api,
        pytest.raises(HoldfastError, match=r"Too often\.") as caught,
    ):
        api.list_servers()
    assert (caught.value.status, caught.value.retry_after, caught.value.fields) == (429, 7.0, {"left": 0})


@pytest.mark.parametrize(
    ("answer", "status", "message"),
    [
        (httpx.Response(502, text="<html>"), 502, "HTTP 502"),
        (httpx.Response(500, json=["x"], headers={"retry-after": "soon"}), 500, "HTTP 500"),
        (httpx.Response(200, text="{", headers={"content-type": "application/json"}), 200, "The answer is not JSON."),
        (
            httpx.Response(200, html="<html>Log in</html>"),
            200,
            "The answer is not from the API: is the address the dashboard's?",
        ),
    ],
)
def test_any_other_answer_is_an_error_too(answer: httpx.Response, status: int, message: str) -> None:
    with client(lambda _: answer) as api, pytest.raises(HoldfastError) as caught:
        api.list_servers()
    assert (caught.value.status, caught.value.message, caught.value.retry_after) == (status, message, None)


def test_no_answer_is_an_error_without_the_token() -> None:
    def away(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    with client(away) as api, pytest.raises(HoldfastError) as caught:
        api.list_servers()
    assert (caught.value.status, TOKEN in repr(caught.value)) == (0, False)


def test_the_token_follows_no_redirect() -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.host)
        return httpx.Response(307, headers={"location": "https://evil.example/"})

    with client(answer) as api, pytest.raises(HoldfastError):
        api.list_servers()
    assert asked == ["roles.example.org"]


@pytest.mark.parametrize("url", ["http://roles.example.org", "roles.example.org", "ftp://localhost", ""])
def test_the_token_is_never_sent_in_the_clear(url: str) -> None:
    with pytest.raises(ValueError, match="https://"):
        Holdfast(url, TOKEN)


@pytest.mark.parametrize("url", ["http://localhost:3000", "http://127.0.0.1:3000", "http://[::1]:3000"])
def test_this_machine_may_be_asked_without_https(url: str) -> None:
    Holdfast(url, TOKEN).close()


def test_no_proxy_of_the_environment_gets_a_token_that_is_sent_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    with socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as proxy:
        proxy.timeout = 0
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.server_address[1]}")
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        asked = list[object]()

        def note(request: socket.socket, address: object) -> None:
            asked.append(address)
            proxy.shutdown_request(request)

        monkeypatch.setattr(proxy, "process_request", note)
        with Holdfast("http://localhost:9", TOKEN, timeout=0.2) as api, pytest.raises(HoldfastError, match="No answer"):
            api.list_servers()
        proxy.handle_request()
    assert asked == []


@pytest.mark.parametrize("token", ["", "whsec_x", "hf_", "hf_a\r\nX: y", "hf_ä"])
def test_what_is_no_token_is_refused_before_it_is_sent(token: str) -> None:
    with pytest.raises(ValueError, match="hf_"):
        Holdfast("https://roles.example.org", token)
