"""What every test may ask for: a migrated database of its own, the sandbox, a browser. Each is made once, when asked."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def short_dir() -> Iterator[Path]:
    """An empty directory with a short path, which other accounts may be let through (pytest's own may not)."""
    with tempfile.TemporaryDirectory(prefix="hf-", dir="/tmp", ignore_cleanup_errors=True) as directory:
        yield Path(directory)
    shutil.rmtree(directory, ignore_errors=True)
