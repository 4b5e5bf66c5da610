"""On which systems the product runs. Needs only a bare Python, also an old one: set-up asks it."""

from __future__ import annotations

import sys


def refusal() -> str | None:
    """Return the sentence for a system on which nothing here starts; None on Linux, which WSL is too."""
    if sys.platform.startswith("linux"):
        return None
    return f"Holdfast runs on Linux and not on {sys.platform}; on Windows, WSL is one."
