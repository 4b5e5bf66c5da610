"""Malformed input that only strangers send makes one log line a minute, however much of it comes."""

import asyncio
from collections.abc import Iterator

import pytest

from services.runtime import rejected_requests

MANY = 5_000


@pytest.fixture(autouse=True)
def nothing_counted() -> Iterator[None]:
    """Empty counts before and after the test."""
    rejected_requests._counts.clear()
    yield
    rejected_requests._counts.clear()


def test_many_are_one_line_with_the_most_frequent_first(caplog: pytest.LogCaptureFixture) -> None:
    for number in range(MANY):
        rejected_requests.count("event: too large" if number % 3 else "socket closed: a message was too large")
    rejected_requests.write()
    rejected_requests.write()
    (line,) = caplog.messages
    assert line == (
        "rejected total=5000 kinds=2 most=[3333x 'event: too large', 1667x 'socket closed: a message was too large']"
    )


def test_kinds_without_end_take_neither_memory_nor_log(caplog: pytest.LogCaptureFixture) -> None:
    for number in range(MANY):
        rejected_requests.count(f"event {number}: too large")
    assert len(rejected_requests._counts) <= rejected_requests.MOST_KINDS + 1
    rejected_requests.write()
    (line,) = caplog.messages
    assert line.startswith(f"rejected total={MANY} ")
    assert len(line) < 1_000


async def test_it_is_written_again_and_again_and_at_the_end(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rejected_requests, "EVERY_SECONDS", 0.01)
    task = asyncio.create_task(rejected_requests.write_on())
    for kind in ("one", "two"):
        rejected_requests.count(kind)
        async with asyncio.timeout(30):
            while not any(kind in line for line in caplog.messages):
                await asyncio.sleep(0.01)
    monkeypatch.setattr(rejected_requests, "EVERY_SECONDS", 3600.0)
    await asyncio.sleep(0.05)
    rejected_requests.count("three")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert "three" in caplog.text
