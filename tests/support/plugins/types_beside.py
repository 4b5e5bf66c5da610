"""The type check that set-up started: it runs beside the tests, and the run fails if it finds something."""

import os
import signal
from typing import cast

import pytest
from _pytest.terminal import TerminalReporter

from tools.steps import TYPES_BESIDE

_CHECK = pytest.StashKey[tuple[int, int]]()


def pytest_configure(config: pytest.Config) -> None:
    """Take over the type check, so that no program that a test starts mistakes it for its own."""
    if beside := os.environ.pop(TYPES_BESIDE, ""):
        process, output = map(int, beside.split())
        config.stash[_CHECK] = process, output


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Wait for the type check and fail the run with its output if it found something; an interrupted run ends it."""
    if _CHECK not in session.config.stash:
        return
    process, output = session.config.stash[_CHECK]
    if exitstatus == pytest.ExitCode.INTERRUPTED:
        os.killpg(process, signal.SIGKILL)
    with open(output, errors="replace") as told:
        found = told.read()
    _, status = os.waitpid(process, 0)
    if status == 0 or exitstatus == pytest.ExitCode.INTERRUPTED:
        return
    report = pytest.TestReport("types", ("types", None, "types"), {}, "failed", found, "call")
    reporter = cast(TerminalReporter, session.config.pluginmanager.get_plugin("terminalreporter"))
    reporter.stats.setdefault("failed", []).append(report)
    session.exitstatus = pytest.ExitCode.TESTS_FAILED
