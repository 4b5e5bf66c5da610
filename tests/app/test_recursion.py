"""Deeply nested JSON cannot crash a process: Python's own recursion limit applies in each of them."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROCESSES = ("app.app", "bot.__main__", "jobs.__main__", "gateways.evm.tokens.web3_calls")
"""What web, bot and jobs import (the last module while they serve), in one Python: a raised limit would affect all."""


def test_a_strangers_nested_json_is_an_error_and_not_the_end() -> None:
    imports = f"import json, {', '.join(PROCESSES)}"
    code = f"{imports}\ntry: json.loads('[' * 1_000_000)\nexcept RecursionError: print('refused')"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout == "refused\n", done.stderr[-2000:]
