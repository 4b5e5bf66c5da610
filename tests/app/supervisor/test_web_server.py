"""The web server uses one thread to end each worker, so that no ended worker counts as alive."""

import threading
from typing import Any, cast

import pytest
from granian.server.common import AbstractWorker

from app.supervisor.web_server import wait_by_one_thread


class Ended:
    """An ended process whose exit code only one thread can collect: to all other threads it looks alive."""

    def __init__(self) -> None:
        self.collected = threading.Event()
        self._by: list[int] = []

    def start(self) -> None:
        pass

    def join(self, timeout: float | None = None) -> None:
        self._by.append(threading.get_ident())
        if self._by[0] == threading.get_ident():
            self.collected.wait(timeout)

    def is_alive(self) -> bool:
        return not self.collected.is_set()


class Worker(AbstractWorker):
    """A granian worker whose parent has asked it to end."""

    inner: Ended

    def _spawn(self, target: Any, args: Any) -> None:
        self.inner = Ended()
        self.interrupt_by_parent = True

    def _id(self) -> int:
        return 1


@pytest.fixture(autouse=True)
def fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Granian as our command patches it, restored after the test."""
    for name in ("_watch", "join"):
        monkeypatch.setattr(AbstractWorker, name, AbstractWorker.__dict__[name])
    wait_by_one_thread()


def test_a_worker_that_has_ended_is_not_alive_after_waiting_for_it() -> None:
    worker = Worker(cast(Any, None), 0, None, ())
    worker.start()
    threading.Timer(0.2, worker.inner.collected.set).start()
    worker.join(30)
    assert not worker.is_alive()


def test_waiting_ends_at_its_time_while_the_worker_runs_on() -> None:
    worker = Worker(cast(Any, None), 0, None, ())
    worker.start()
    worker.join(0.01)
    assert worker.is_alive()
    worker.inner.collected.set()
    worker.join()
    assert not worker.is_alive()
