"""The client: sends calls with an API token, and raises an error with a sentence for a person."""

import re
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import quote

import httpx

_OWN_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})
PATIENCE = 90.0
"""Seconds without an answer: a preview reads chains for up to 45, and may wait before for Discord's list of members."""
_CONNECT_SECONDS = 10.0


class HoldfastError(Exception):
    """The API refused a call, or did not answer.

    `status` is the HTTP status, 0 without an answer. `retry_after` is in how many seconds the call may be made again,
    where the API says so. `fields` has what else the answer had.
    """

    def __init__(
        self, status: int, message: str, retry_after: float | None = None, fields: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after = retry_after
        self.fields: Mapping[str, Any] = fields or {}


class Client:
    """The connection to one server's API.

    `url` is where the dashboard is, such as `https://roles.example.org`. The token is sent there alone: no redirect is
    followed, and only this machine is asked without https. One client may be used by several threads. A call ends after
    `timeout` seconds without an answer.
    """

    def __init__(
        self, url: str, token: str, *, timeout: float = PATIENCE, transport: httpx.BaseTransport | None = None
    ) -> None:
        base = httpx.URL(url)
        if base.scheme != "https" and (base.scheme != "http" or base.host not in _OWN_MACHINE):
            raise ValueError("The address has to begin with https://, or be of this machine.")
        if not re.fullmatch(r"hf_[A-Za-z0-9_-]+", token):
            raise ValueError("This is not an API token: one begins with hf_.")
        self._http = httpx.Client(
            base_url=base,
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json, text/csv"},
            timeout=httpx.Timeout(timeout, connect=min(timeout, _CONNECT_SECONDS)),
            transport=transport,
            follow_redirects=False,
            # A proxy of the environment would get the token in the clear, and its localhost is another machine.
            trust_env=base.scheme == "https",
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _call(
        self,
        method: str,
        path: str,
        *,
        places: dict[str, Any] | None = None,
        query: dict[str, Any] | None = None,
        header: dict[str, Any] | None = None,
        body: Any = None,
        csv: str | None = None,
    ) -> Any:
        address = path.format_map({name: _segment(value) for name, value in (places or {}).items()})
        asked, headers = _given(query), _given(header)
        sent: dict[str, Any] = {"headers": headers}
        if body is not None:
            sent["json"] = body
        elif csv is not None:
            sent = {"content": csv.encode(), "headers": headers | {"Content-Type": "text/csv"}}
        try:
            answer = self._http.request(method, address, params=asked, **sent)
        except httpx.HTTPError as fault:
            raise HoldfastError(0, f"No answer ({type(fault).__name__}).") from fault
        if not answer.is_success:
            raise _refusal(answer)
        kind = answer.headers.get("content-type", "")
        if kind.startswith("application/json"):
            return _json(answer)
        if kind.startswith("text/csv"):
            return answer.text
        if answer.content:
            # A page, of a proxy that asks people to log in, or of another site.
            said = "The answer is not from the API: is the address the dashboard's?"
            raise HoldfastError(answer.status_code, said)
        return None


def _given(values: dict[str, Any] | None) -> dict[str, Any]:
    """Return the values that the caller gave."""
    return {name: value for name, value in (values or {}).items() if value is not None}


def _segment(value: object) -> str:
    """Return a value as one part of a path, which cannot lead to another call."""
    text = str(value)
    if text in {"", ".", ".."}:
        raise ValueError(f"{text!r} cannot be a part of an address.")
    return quote(text, safe="")


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        raise HoldfastError(answer.status_code, "The answer is not JSON.") from None


def _refusal(answer: httpx.Response) -> HoldfastError:
    try:
        found: Any = answer.json()
    except ValueError:
        found = None
    fields = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    message = fields.get("message")
    waits = answer.headers.get("retry-after", "")
    return HoldfastError(
        answer.status_code,
        message if isinstance(message, str) else f"HTTP {answer.status_code}",
        float(waits) if waits.isascii() and waits.isdigit() else None,
        {name: value for name, value in fields.items() if name != "message"},
    )
