"""The web server uses one thread to end each worker, so that no ended worker counts as alive."""

import socket
import subprocess
import sys
import threading
from typing import Any, cast

import pytest
from granian.server.common import AbstractWorker

from app.supervisor.granian_command import wait_by_one_thread
from app.supervisor.web import APP
from settings import ROOT


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


def test_a_port_of_another_program_is_told_in_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        options = ("--interface", "asgi", "--factory", "--host", "127.0.0.1", "--port", port, APP)
        done = subprocess.run(
            [sys.executable, "-m", "app.supervisor.granian_command", *options],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == (
        f"The web cannot open port {port} at 127.0.0.1: Address already in use. Stop the program that uses it, or set "
        "PORT or BIND."
    )
    assert "Traceback" not in done.stderr
