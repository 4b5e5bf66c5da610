"""Granian's command without a race in its shutdown: `python -m app.supervisor.granian_command`, not `-m granian`.

In granian 2.8 a thread waits for each worker's end, and at shutdown the main thread waits for the same process. Only
one of them can collect its exit code; to the other the worker still seems alive for a moment. On a busy machine granian
then says that it kills a worker which has ended in order.
"""

import re
import sys
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


def unopened(fault: RuntimeError) -> str | None:
    """Return a sentence for a port that granian could not open; None for any other error."""
    found = re.match(r"(.+) \(os error \d+\)", str(fault))
    if not found:
        return None
    at = dict(zip(sys.argv, sys.argv[1:], strict=False))
    where = f"port {at.get('--port')} at {at.get('--host')}"
    return f"The web cannot open {where}: {found[1]}. Stop the program that uses it, or set PORT or BIND."


def main() -> None:
    """Serve until stopped."""
    wait_by_one_thread()
    try:
        entrypoint()
    except RuntimeError as fault:
        if sentence := unopened(fault):
            sys.exit(sentence)
        raise


if __name__ == "__main__":
    main()
