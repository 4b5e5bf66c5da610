"""Nobody can end a process with deeply nested JSON: Python's own limit stands in each of them."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("module", ["app.app", "bot.__main__", "jobs.__main__"])
def test_a_strangers_nested_json_is_an_error_and_not_the_end(module: str) -> None:
    code = f"import json, {module}\ntry: json.loads('[' * 1_000_000)\nexcept RecursionError: print('refused')"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout == "refused\n", done.stderr[-2000:]
