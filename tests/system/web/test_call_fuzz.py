"""Calls generated from our own description, sensible and odd: none fails, and all answers are as described."""

import os
import time
from typing import Any

import httpx
import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, strategies

from tests.system.web.conftest import Web, sign_in

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "2"))
"""Calls of each kind; `make fuzz` makes many more."""
WANTED = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance")


@pytest.fixture(scope="module")
def description(web: Web) -> Any:
    """The document that programs read."""
    # Imported here and below, so that merely collecting tests does not load the largest package of them all.
    import schemathesis

    found = schemathesis.openapi.from_url(f"{web.url}/api/openapi.json")
    # Each call is made with a session of its own; a made-up cookie beside it would be another session's.
    found.config.generation.update(with_security_parameters=False)
    return found


class Ada:
    """A person who stays signed in, whatever calls are made as her (some of them sign her out)."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._session = sign_in(url, "ada")

    def session(self) -> str:
        """Return the id of a live session."""
        answer = httpx.get(f"{self._url}/api/auth/user", headers={"x-session-id": self._session}, timeout=30)
        if answer.status_code == 401:
            self._session = sign_in(self._url, "ada")
        return self._session


@pytest.fixture(scope="module")
def ada(web: Web) -> Ada:
    """The person as whom all calls are made."""
    return Ada(web.url)


@pytest.fixture(scope="module")
def server(web: Web, ada: Ada) -> str:
    """A server that ada administers, so that calls get further than "not found"."""
    with httpx.Client(base_url=web.url, headers={"x-session-id": ada.session()}, timeout=30) as client:
        guild = client.get("/api/discord/servers").json()[0]
        added = client.post("/api/servers", json={"discordServerId": guild["id"], "serverName": guild["name"]})
        assert added.status_code in {201, 409}, added.text
        # A process that has just started may need longer for its first check than it allows the database.
        while client.get("/api/status").status_code != 200:
            time.sleep(0.2)
        return str(client.get("/api/servers").json()[0]["internalId"])


def operations() -> list[str]:
    """Return every call as `METHOD path`."""
    from app.api import api

    return [
        f"{method.upper()} {path}"
        for path, methods in api.openapi()["paths"].items()
        for method in methods
        if path.startswith("/api/")
    ]


@pytest.mark.parametrize("operation", operations())
def test_no_call_fails_and_each_answers_as_described(ada: Ada, description: Any, server: str, operation: str) -> None:
    from schemathesis.checks import CHECKS

    method, path = operation.split(" ", 1)
    session = ada.session()
    checks = CHECKS.get_by_names(WANTED)
    call = description[path][method]

    @hypothesis.settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
    @hypothesis.given(case=call.as_strategy(), inside=strategies.booleans())
    def attempt(case: Any, inside: bool) -> None:
        if inside and "server_id" in case.path_parameters:
            case.path_parameters["server_id"] = server
        if inside and "serverId" in case.query:
            case.query["serverId"] = server
        headers = {"x-session-id": session}
        answer = case.call(headers=headers, timeout=30)
        case.validate_response(answer, checks=checks, headers=headers)

    attempt()
