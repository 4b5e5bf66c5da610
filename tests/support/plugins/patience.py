"""Limits for tests that hang: such a test fails and shows what it waits for. Each failure is named at once."""

import asyncio
import faulthandler
import gc
import signal
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, cast

import pytest
from _pytest.terminal import TerminalReporter

SECONDS, AGAIN_SECONDS, MORE_SECONDS = 240, 60, 180
"""A phase of a test fails after so long, again and again where that is ignored; after more its worker ends."""
LONGER = {"tests/system/": 900, "tests/bot/": 900}
"""Machines that are started whole may take their time on a busy one; each wait within has a deadline of its own."""


class EndsHangs:
    """Bounds each phase of each test: its fixtures, itself, and what takes them apart."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        """Fixtures that are shared are set up here too."""
        with bounded(item):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """The test itself."""
        with bounded(item):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """An event loop waits here for ever for a task that does not end when it is cancelled."""
        with bounded(item):
            return (yield)


@contextmanager
def bounded(item: pytest.Item) -> Iterator[None]:
    """Fail what takes longer than a test may, and end its worker, with every thread's stack, if that is ignored.

    A callback of an event loop swallows the failure; then the next one meets what waits. When a worker ends, the others
    take over, and the run says which test it was.
    """
    seconds = next((more for place, more in LONGER.items() if item.nodeid.startswith(place)), SECONDS)

    def give_up(_signal: int, _frame: FrameType | None) -> None:
        pytest.fail(f"nothing came of it in {seconds} s\n" + "\n".join(waiting()), pytrace=False)

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_SECONDS)
    faulthandler.dump_traceback_later(seconds + MORE_SECONDS, exit=True, file=sys.__stderr__ or sys.stderr)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        faulthandler.cancel_dump_traceback_later()


def waiting() -> Iterator[str]:
    """Yield each task that is not done, and the lines at which it and what it awaits stand."""
    for task in [one for one in gc.get_objects() if isinstance(one, asyncio.Task) and not one.done()]:
        step: Any = task.get_coro()
        yield f"{task.get_name()} (asked to end {task.cancelling()} times)"
        while (frame := getattr(step, "cr_frame", None) or getattr(step, "ag_frame", None)) is not None:
            yield f"    {frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}"
            step = getattr(step, "cr_await", None) or getattr(step, "ag_await", None)


class NamesFailures:
    """Prints each failure when it happens, so that a run that is killed before its summary still names it."""

    def __init__(self, terminal: TerminalReporter) -> None:
        self._terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the test and its phase; the summary has the rest."""
        if report.failed:
            self._terminal.write_line(f" {report.nodeid} ({report.when})")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Bound every process that runs tests, and name failures where somebody reads."""
    plugins = session.config.pluginmanager
    plugins.register(EndsHangs())
    if not hasattr(session.config, "workerinput"):
        plugins.register(NamesFailures(cast(TerminalReporter, plugins.get_plugin("terminalreporter"))))
