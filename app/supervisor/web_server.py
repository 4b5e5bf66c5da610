"""Granian's command without a race in its shutdown: `python -m app.supervisor.web_server`, not `-m granian`.

In granian 2.8 a thread waits for each worker's end, and at shutdown the main thread waits for the same process. Only
one of them can collect its exit code; to the other the worker still seems alive for a moment. On a busy machine granian
then says that it kills a worker which has ended in order.
"""

import threading
from typing import Any, cast

from granian.cli import entrypoint
from granian.server.common import AbstractWorker


def wait_by_one_thread() -> None:
    """Let granian wait for a worker by the one thread that collects its exit code, from the next worker on."""
    worker = cast(Any, AbstractWorker)

    def watch(self: Any) -> None:
        self.watcher = threading.Thread(target=self._watcher)
        self.watcher.start()

    def join(self: Any, timeout: float | None = None) -> None:
        self.watcher.join(timeout)

    worker._watch, worker.join = watch, join


if __name__ == "__main__":
    wait_by_one_thread()
    entrypoint()
