"""The conditions of a soak: nodes as distant and limited as real ones, and a database proxy that can fall silent."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from sqlalchemy import make_url

from tests.conftest import ROOT, free_port, wait_until_open
from tests.support.distant_node import far


@contextmanager
def nodes(sandbox: str) -> Iterator[dict[str, str]]:
    """Yield the settings that name the chains' nodes: two unlike ones for base and ethereum, one for polygon.

    They forward to the sandbox's own nodes, so its faults still act.
    """
    with ExitStack() as stack:

        def there(front: str, chain: str, milliseconds: int, *, logs: int = 0, batch: int = 0, address: int = 0) -> str:
            url = f"{sandbox}/{front}/{chain}"
            return stack.enter_context(far(url, milliseconds, logs=logs, batch=batch, address=address))

        yield {
            "RPC_BASE": f"{there('rpc', 'base', 50)} {there('rpc2', 'base', 150, logs=10, batch=3)}",
            "RPC_ETHEREUM": f"{there('rpc', 'ethereum', 80, logs=500)} {there('rpc2', 'ethereum', 50, address=1)}",
            "RPC_POLYGON": there("rpc", "polygon", 50, batch=10),
        }


class DatabaseWay:
    """A TCP address for a PostgreSQL that listens only on a local socket."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        self.port = free_port()
        self.url = make_url(url).set(host="127.0.0.1", port=self.port, query={}).render_as_string(hide_password=False)
        socket = Path(query["host"][0]) / f".s.PGSQL.{query['port'][0]}"
        command = [sys.executable, "-m", "tests.system.soak.silent_proxy", str(self.port), str(socket)]
        self._process = subprocess.Popen(command, cwd=ROOT)
        wait_until_open(self.port, self._process)

    def fall_silent(self) -> None:
        """Stop all traffic on the connections that are open now."""
        self._process.send_signal(signal.SIGUSR1)

    def close(self) -> None:
        """End the proxy."""
        self._process.kill()
        self._process.wait()
