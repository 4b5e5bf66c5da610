"""The programs that run inside the EVM: their Yul sources, and what the compiler made of them (`bytecode.json`).

`python -m sandbox.contracts.compile` compiles them after a change.
"""

import json
from pathlib import Path

_CODES: dict[str, str] = json.loads((Path(__file__).parent / "bytecode.json").read_bytes())


def code(name: str) -> str:
    """Return a program's code, hexadecimal with 0x."""
    return _CODES[name]
