"""An append-only file of JSON lines from which a part of the sandbox rebuilds its world after a kill."""

import json
import os
from pathlib import Path
from typing import Any

Record = dict[str, Any]


class Journal:
    """JSON lines on disk. What `append` has written when it returns survives a `kill -9` of this process."""

    def __init__(self, path: Path) -> None:
        """Open or create the file. A last line that a kill cut short is removed, so the next one starts cleanly."""
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = self._open()
        self._cut_torn_line()

    def _open(self) -> int:
        return os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)

    def _cut_torn_line(self) -> None:
        content = self.path.read_bytes()
        if content and not content.endswith(b"\n"):
            os.ftruncate(self._fd, content.rfind(b"\n") + 1)

    def records(self) -> list[Record]:
        """Return everything written so far, oldest first."""
        return [json.loads(line) for line in self.path.read_bytes().split(b"\n") if line]

    def append(self, record: Record) -> None:
        """Write one record with one write call: the kernel has it when this returns."""
        self.extend([record])

    def extend(self, records: list[Record]) -> None:
        """Write several records that belong together with one write call."""
        pending = memoryview(b"".join(_line(record) for record in records))
        while pending:
            pending = pending[os.write(self._fd, pending) :]

    def rewrite(self, records: list[Record]) -> None:
        """Replace everything with `records`; after a kill, either the old file or the new one is there.

        Raises OSError where the disk has no room for the new one; then the old one stays.
        """
        fresh = self.path.with_suffix(".fresh")
        try:
            fresh.write_bytes(b"".join(_line(record) for record in records))
            fresh.chmod(0o600)
            os.replace(fresh, self.path)
        except OSError:
            fresh.unlink(missing_ok=True)
            raise
        os.close(self._fd)
        self._fd = self._open()

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


def _line(record: Record) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"
