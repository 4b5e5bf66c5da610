"""Time limits for tests that hang: such a test fails and shows what it waits for. Each failure is printed at once."""

import asyncio
import faulthandler
import gc
import signal
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, cast

import pytest
from _pytest.terminal import TerminalReporter

SECONDS, AGAIN_SECONDS, MORE_SECONDS = 240, 60, 180
"""Seconds after which a phase of a test fails, how often that repeats if it is ignored, and when its worker ends."""
LONGER = {"tests/system/": 900, "tests/bot/": 900}
"""Seconds for tests that start the whole product, which may be slow on a busy machine.

Each wait within such a test has its own deadline.
"""
REARM_SECONDS = 10
"""Seconds within which the end of a worker is set only once: each setting starts a thread, thrice a test otherwise."""


class EndsHangs:
    """Limits the time of each phase of each test: set-up, the test itself, and tear-down."""

    def __init__(self) -> None:
        self._set_at: float | None = None
        """When the end of this worker was last set; None outside of tests, where a worker may wait for long."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        """Take the end of the worker back after each test."""
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()
            self._set_at = None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        """Limit the set-up, which includes that of shared fixtures."""
        with self._bounded(item):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Limit the test itself."""
        with self._bounded(item):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """Limit the tear-down, where an event loop waits for ever for a task that ignores its cancellation."""
        with self._bounded(item):
            return (yield)

    @contextmanager
    def _bounded(self, item: pytest.Item) -> Iterator[None]:
        """Fail the phase if it takes longer than it may; if that is ignored, print all stacks and end the worker.

        An event loop's callback may swallow the failure; the next one then reaches the code that waits. When a worker
        ends, the others take over, and the run names the test.
        """
        seconds = next((more for place, more in LONGER.items() if item.nodeid.startswith(place)), SECONDS)

        def give_up(_signal: int, _frame: FrameType | None) -> None:
            pytest.fail(f"nothing came of it in {seconds} s\n" + "\n".join(waiting()), pytrace=False)

        before = signal.signal(signal.SIGALRM, give_up)
        signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_SECONDS)
        now = time.monotonic()
        if self._set_at is None or now - self._set_at > REARM_SECONDS:
            limit = seconds + MORE_SECONDS + REARM_SECONDS
            faulthandler.dump_traceback_later(limit, exit=True, file=sys.__stderr__ or sys.stderr)
            self._set_at = now
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


def waiting() -> Iterator[str]:
    """Yield each task that is not done, with the line at which it and each coroutine that it awaits is suspended."""
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
    """Limit the time of tests in every process that runs them, and print failures in the process with the terminal."""
    plugins = session.config.pluginmanager
    plugins.register(EndsHangs())
    if not hasattr(session.config, "workerinput"):
        plugins.register(NamesFailures(cast(TerminalReporter, plugins.get_plugin("terminalreporter"))))
