"""Which requests have a line in the log."""

import logging

import httpx
import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.http.access_log import AccessLog


async def test_a_check_of_the_health_has_a_line_when_its_answer_changes(caplog: pytest.LogCaptureFixture) -> None:
    """The supervisor asks ten times a second while it waits, and what is wrong must not drown in that."""
    statuses = iter([503, 503, 200, 200, 200, 503])

    async def answers(scope: Scope, receive: Receive, send: Send) -> None:
        await Response(status_code=next(statuses))(scope, receive, send)

    caplog.set_level(logging.INFO, "holdfast.access")
    transport = httpx.ASGITransport(app=AccessLog(answers))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        for _ in range(6):
            await client.get("/health")
    assert [record.getMessage().split()[2] for record in caplog.records] == ["503", "200", "503"]


async def test_an_invented_method_does_not_make_a_line_long(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "holdfast.access")
    transport = httpx.ASGITransport(app=AccessLog(Response(status_code=405)))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        await client.request("A" * 60_000, "/")
    (record,) = caplog.records
    assert len(record.getMessage()) < 100


async def test_every_other_request_has_a_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "holdfast.access")
    transport = httpx.ASGITransport(app=AccessLog(Response(status_code=200)))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        for path in ("/health/deep", "/health/deep", "/", "/health?x=1"):
            await client.get(path)
    assert len(caplog.records) == 4
