"""HEAD answers as GET does, without a body, and does nothing that GET would leave behind."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from sqlmodel import func, select

from app.api import activity as activity_calls
from app.api import api
from app.api.requests.head_requests import ACTS
from models import Event, SignIn, transaction
from tests.app.api.browsers import Browser
from tests.app.api.server.test_members import ruled, world  # noqa: F401  (fixtures)


def get_calls() -> list[str]:
    return [path for path, methods in api.openapi()["paths"].items() if "get" in methods]


async def left_behind() -> tuple[int, int]:
    """Return how many lines the log has, and how many sign-ins are under way."""
    async with transaction() as db:
        lines = (await db.exec(select(func.count()).select_from(Event))).one()
        return lines, (await db.exec(select(func.count()).select_from(SignIn))).one()


@pytest.mark.parametrize(
    "path", ["/health", "/api/status", "/api/docs", "/api/openapi.json", "/health/deep", "/metrics"]
)
async def test_a_monitor_may_ask_without_a_body(browser: Browser, path: str):
    asked, got = await browser.client.head(path), await browser.client.get(path)
    assert (asked.status_code, asked.content) == (got.status_code, b"")
    assert asked.headers["content-type"] == got.headers["content-type"]
    assert asked.headers["content-security-policy"] == got.headers["content-security-policy"]


async def test_every_call_that_reads_answers_head_and_leaves_nothing_behind(
    browser: Browser,
    ruled: dict[str, Any],  # noqa: F811
) -> None:
    named = {"server_id": ruled["serverId"], "rule_id": ruled["id"]}
    before, wrong = await left_behind(), dict[str, object]()
    for path in get_calls():
        address = re.sub(r"\{(\w+)\}", lambda found: str(named.get(found[1], "1")), path)
        asked = await browser.client.head(address, params={"serverId": ruled["serverId"]})
        if ACTS.fullmatch(address):
            takes = asked.status_code == 405 and "HEAD" not in asked.headers["allow"]
        else:
            got = await browser.client.get(address, params={"serverId": ruled["serverId"]})
            takes = asked.status_code == got.status_code != 405
        if asked.content or not takes:
            wrong[path] = asked.status_code, asked.content
    assert wrong == {}
    assert await left_behind() == before


async def test_a_length_is_that_of_the_body_that_get_sends(browser: Browser, ruled: dict[str, Any]):  # noqa: F811
    path = f"/api/verification-rules/{ruled['id']}"
    asked, got = await browser.client.head(path), await browser.client.get(path)
    assert asked.headers["content-length"] == str(len(got.content))


async def test_of_a_download_only_the_beginning_is_read(
    browser: Browser,
    ruled: dict[str, Any],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read(*_: object) -> None:
        raise AssertionError("nobody asked for further lines")

    monkeypatch.setattr(activity_calls, "CSV_PAGE", 1)
    monkeypatch.setattr(activity_calls, "next_page", read)
    asked = await browser.client.head(f"/api/servers/{ruled['serverId']}/events.csv")
    assert (asked.status_code, asked.content) == (200, b"")
    assert asked.headers["content-disposition"].startswith("attachment")


async def test_signing_out_takes_no_head(browser: Browser, ruled: dict[str, Any]):  # noqa: F811
    asked = await browser.client.head("/api/auth/logout", headers={"sec-fetch-site": "same-origin"})
    assert asked.status_code == 405
    assert (await browser.client.get("/api/auth/user")).status_code == 200


async def test_a_call_without_get_says_so(new_browser: Callable[[], Browser]):
    asked = await new_browser().client.head("/api/verify-wallet")
    assert (asked.status_code, asked.headers["allow"]) == (405, "POST")
