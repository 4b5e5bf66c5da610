"""The systems on which the product runs, and files that it cannot use. Needs only a bare Python, even an old one."""

from __future__ import annotations

import sys


def refusal() -> str | None:
    """Return the error message for a system on which the product cannot start; None on Linux, including WSL."""
    if sys.platform.startswith("linux"):
        return None
    return f"Holdfast runs on Linux and not on {sys.platform}; on Windows, WSL is one."


def unusable(fault: OSError) -> str:
    """Return the error message for a file of ours that cannot be used: a full or read-only disk, another user's."""
    return f"{fault.filename or 'A file'} cannot be used: {fault.strerror or fault}."
