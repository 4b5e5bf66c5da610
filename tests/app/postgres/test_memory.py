"""The share of a machine's memory that the embedded PostgreSQL may take."""

import os
from pathlib import Path

import pytest

from app.postgres.memory import LEAST_MB, MOST_MB, SHARE, buffers_mb

GIGABYTE = 2**30


@pytest.mark.parametrize(
    ("machine", "container", "megabytes"),
    [
        (64 * GIGABYTE, None, MOST_MB),
        (4 * GIGABYTE, None, 4096 // SHARE),
        (GIGABYTE // 2, None, LEAST_MB),
        (64 * GIGABYTE, "max\n", MOST_MB),
        (64 * GIGABYTE, f"{2 * GIGABYTE}\n", 2048 // SHARE),
        (4 * GIGABYTE, f"{64 * GIGABYTE}\n", 4096 // SHARE),
    ],
)
def test_it_is_an_eighth_of_what_there_is(
    machine: int, container: str | None, megabytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": machine // 4096}[name])
    limit = tmp_path / "memory.max"
    if container is not None:
        limit.write_text(container)
    assert buffers_mb(limit) == megabytes
