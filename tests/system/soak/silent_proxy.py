"""`python -m tests.system.soak.silent_proxy PORT SOCKET`: a proxy to a database that can fall silent.

On SIGUSR1 every open connection stays open but carries no data in either direction, as when a
firewall between two machines forgets them; new ones work.
"""

import asyncio
import contextlib
import signal
import sys

NOTICED_SECONDS = 10.0
"""Seconds after which the end of one side of a silent connection ends the other one."""


class Way:
    """Connections from a TCP port to a local socket."""

    def __init__(self, socket: str) -> None:
        self.socket = socket
        self.open: set[asyncio.Event] = set()
        self.kept: set[asyncio.Task[None] | None] = set()
        """Strong references: the event loop itself keeps no waiting task alive."""

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry a connection's bytes both ways until one side closes, or for ever once it is silent."""
        silent = asyncio.Event()
        self.kept.add(asyncio.current_task())
        try:
            there_reader, there_writer = await asyncio.open_unix_connection(self.socket)
        except OSError:
            writer.close()
            return
        self.open.add(silent)
        await asyncio.gather(self._pump(reader, there_writer, silent), self._pump(there_reader, writer, silent))
        self.open.discard(silent)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, silent: asyncio.Event) -> None:
        with contextlib.suppress(OSError):
            while piece := await source.read(65_536):
                if silent.is_set():
                    # Read and thrown away, so that the sender's kernel believes that all is well.
                    continue
                sink.write(piece)
                await sink.drain()
        if silent.is_set():
            # Each machine's kernel notices by its own probes that the other side is gone.
            await asyncio.sleep(NOTICED_SECONDS)
        sink.close()

    def fall_silent(self) -> None:
        """Stop all traffic on the connections that are open now."""
        for silent in self.open:
            silent.set()


async def main() -> None:
    """Serve until killed."""
    way = Way(sys.argv[2])
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, way.fall_silent)
    async with await asyncio.start_server(way.carry, "127.0.0.1", int(sys.argv[1])) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
