"""Machines that are started whole may take their time on a busy one."""

import signal

import pytest

PATIENCE_SECONDS = 900
"""Each wait within has a deadline of its own."""


@pytest.fixture(autouse=True)
def more_patience(patience: None) -> None:
    signal.alarm(PATIENCE_SECONDS)
