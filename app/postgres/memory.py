"""The machine's memory, and the size of the embedded PostgreSQL's page cache."""

import contextlib
import os
from pathlib import Path

LEAST_MB, MOST_MB = 128, 1024
SHARE = 8
"""The cache gets 1/SHARE of the machine's memory; the rest is for the product and the system's own cache."""
CONTAINER = Path("/sys/fs/cgroup/memory.max")
"""The memory limit of a container in bytes, or "max" (Linux, control groups version 2)."""


def buffers_mb(container: Path = CONTAINER) -> int:
    """Return megabytes for `shared_buffers`; PostgreSQL takes them as it needs them."""
    return max(LEAST_MB, min(MOST_MB, memory_bytes(container) // SHARE // 2**20))


def memory_bytes(container: Path = CONTAINER) -> int:
    """Return the memory that this machine has, or that its container may take."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError):  # no container, or one without a limit
        memory = min(memory, int(container.read_text()))
    return memory
