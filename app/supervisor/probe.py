"""Asks /health of the web on this machine: for the supervisor, and for a container (`python -m app.supervisor.probe`).

Standard library only: a container runs it every few seconds.
"""

import asyncio
import os
import sys

HERE = frozenset({"", "127.0.0.1", "0.0.0.0", "::", "::1"})
"""Values of BIND where the web also listens on this machine's loopback interface."""


def address_of(bind: str) -> str:
    """Return the address where this machine reaches a web that listens on `bind`."""
    return "localhost" if bind in HERE else bind


async def answers_ok(port: int, path: str, host: str, address: str) -> bool:
    """Return whether a GET at an address of this machine answers 200 within five seconds; `host` is its Host header."""
    try:
        async with asyncio.timeout(5):
            reader, writer = await asyncio.open_connection(address, port)
            try:
                writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
                status = await reader.readline()
            finally:
                writer.close()
    except (OSError, TimeoutError, ValueError):  # the last for a line longer than any of HTTP
        return False
    return status.split()[1:2] == [b"200"]


def main() -> int:
    """Return 0 if /health answers 200 on PORT of BIND."""
    # Blanks around them count for nothing, as in the settings.
    port = int(os.environ.get("PORT", "").strip() or 3000)
    address = address_of(os.environ.get("BIND", "").strip())
    return 0 if asyncio.run(answers_ok(port, "/health", f"localhost:{port}", address)) else 1


if __name__ == "__main__":
    sys.exit(main())
