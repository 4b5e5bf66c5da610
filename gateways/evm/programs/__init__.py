"""The programs that run inside the EVM: their Yul sources, and their compiled code (`bytecode.json`).

`python -m sandbox.contracts.compile` compiles them after a change. The answer of each begins with five words: its mark
xor the call data's first word, the chain's id, the block's timestamp, and the gas at the start and at the end.
"""

import json
from pathlib import Path

from gateways.transport.errors import ProviderConfused

_CODES: dict[str, str] = json.loads((Path(__file__).parent / "bytecode.json").read_bytes())


def code(name: str) -> str:
    """Return a program's code, hexadecimal with 0x."""
    return _CODES[name]


def header(
    provider: str, answer: bytes, size: int, *, data: bytes, magic: int, chain_id: int, what: str = "answers"
) -> list[int]:
    """Return the words in the first `size` bytes of an answer to this call data.

    Raises ProviderConfused when one of them is wrong.
    """
    words = [int.from_bytes(answer[at : at + 32], "big") for at in range(0, size, 32)]
    if words[0] ^ magic != int.from_bytes(data[:32], "big"):
        raise ProviderConfused(provider, f"the {what} lack their mark")
    if words[1] != chain_id:
        raise ProviderConfused(provider, f"the {what} are of chain {words[1]}")
    if not 0 < words[4] < words[3]:
        raise ProviderConfused(provider, f"the {what} cost no gas")
    return words
