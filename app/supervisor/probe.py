"""Asks /health of the web on this machine: for the supervisor, and for a container (`python -m app.supervisor.probe`).

Standard library only: a container runs it every few seconds.
"""

import asyncio
import os
import sys


async def answers_ok(port: int, path: str, host: str) -> bool:
    """Return whether a GET on this machine answers 200 within five seconds."""
    try:
        async with asyncio.timeout(5):
            reader, writer = await asyncio.open_connection("localhost", port)
            try:
                writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
                status = await reader.readline()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False
    return status.split()[1:2] == [b"200"]


def main() -> int:
    """Return 0 if /health answers 200 on PORT."""
    port = os.environ.get("PORT") or "3000"
    return 0 if asyncio.run(answers_ok(int(port), "/health", f"localhost:{port}")) else 1


if __name__ == "__main__":
    sys.exit(main())
