"""The errors of the database that a process has logged: it logs repeated ones rarely, and tests share a process."""

import sys

import pytest


@pytest.fixture(autouse=True)
def no_error_was_logged_before() -> None:
    """Let the log of each test have its own errors."""
    if known := sys.modules.get("services.runtime.database_faults"):
        known._told.clear()
        known._repeated.clear()
