"""The systems on which the product runs, files that it cannot use, and outputs that cannot take what it says.

Needs only a bare Python, even an old one.
"""

from __future__ import annotations

import errno
import io
import os
import sys

NO_READER = frozenset({errno.EPIPE, errno.EIO})
"""The errors of an output that nobody reads any more: a pipe, and a terminal that was closed."""


def refusal() -> str | None:
    """Return the error message for a system on which the product cannot start; None on Linux, including WSL."""
    if sys.platform.startswith("linux"):
        return None
    return f"Holdfast runs on Linux and not on {sys.platform}; on Windows, WSL is one."


def unusable(fault: OSError) -> str:
    """Return the error message for a file of ours that cannot be used: a full or read-only disk, another user's."""
    return f"{fault.filename or 'A file'} cannot be used: {fault.strerror or fault}."


def escape_output() -> None:
    """Escape what the output's encoding lacks (an arrow, in a locale with Latin-1), which is otherwise an error."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def tell(text: str) -> None:
    """Print a line, which is lost if it cannot be printed: that must not stop what the line is about."""
    try:
        print(text, flush=True)
    except OSError as fault:
        if fault.errno in NO_READER:
            discard_output()


def discard_output() -> None:
    """Discard the output, whose reader is gone: what is still buffered, later output, and that of later children."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
