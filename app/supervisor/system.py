"""The systems on which the product runs. Needs only a bare Python, even an old one, because set-up calls it."""

from __future__ import annotations

import sys


def refusal() -> str | None:
    """Return the error message for a system on which the product cannot start; None on Linux, including WSL."""
    if sys.platform.startswith("linux"):
        return None
    return f"Holdfast runs on Linux and not on {sys.platform}; on Windows, WSL is one."
