"""The few parts of the ABI that the sandbox writes and reads: words, texts, lists of moves, revert reasons."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
from eth_hash.auto import keccak

ARTEFACTS: dict[str, dict[str, Any]] = orjson.loads(
    (Path(__file__).parents[1] / "contracts" / "artefacts.json").read_bytes()
)
CONTRACTS = {
    "ERC721": "Collection721",
    "ERC721Enumerable": "Collection721Enumerable",
    "ERC1155": "Collection1155",
    "Punks": "Punks",
}
NOBODY = "0x" + "00" * 20
UINT256 = 2**256
"""The first number that a word cannot hold."""
_ERROR = "08c379a0"
_PANIC = "4e487b71"

Move = tuple[str, str, int, int]
"""From, to, token id, amount. NOBODY is the sender of a mint and the receiver of a burn."""


def word(value: int | str) -> str:
    """Return a number, an address or 32 bytes as 64 hexadecimal digits."""
    if isinstance(value, int):
        return f"{value:064x}"
    digits = value.removeprefix("0x").lower()
    return digits.rjust(64, "0")


def call(contract: str, form: str, *values: int | str) -> str:
    """Return the call data for `form` of one of our contracts; each argument is one word."""
    return ARTEFACTS[contract]["selectors"][form] + "".join(word(value) for value in values)


def call_with_text(contract: str, form: str, first: int | str, said: str) -> str:
    """Return the call data for `form` with one word and one text."""
    return ARTEFACTS[contract]["selectors"][form] + word(first) + word(64) + text(said)


def deployment(standard: str, name: str, symbol: str, metadata: str, keeper: str) -> str:
    """Return the data to send to deploy a collection of this standard."""
    tails = [text(name), text(symbol), text(metadata)]
    heads, offset = "", 4 * 32
    for tail in tails:
        heads += word(offset)
        offset += len(tail) // 2
    return ARTEFACTS[CONTRACTS[standard]]["bytecode"] + heads + word(keeper) + "".join(tails)


def staking_deployment(contract: str, name: str, keeper: str) -> str:
    """Return the data to send to deploy a staking contract."""
    return ARTEFACTS[contract]["bytecode"] + word(64) + word(keeper) + text(name)


def stakes_in(answer: str) -> dict[int, str]:
    """Return the answer of a staking contract's `stakes()` as token id → lower-case address of the staker."""
    data = words(answer)
    who, tokens = list_at(data, 0), list_at(data, 1)
    return {token: f"0x{staker:040x}" for staker, token in zip(who, tokens, strict=True)}


def account(standard: str, owner: str) -> str:
    """Return the data to send to deploy a contract account of this owner."""
    return ARTEFACTS[standard]["bytecode"] + word(owner)


def settlement(moves: Iterable[Move]) -> str:
    """Return the call data for `settle`, which every collection has."""
    listed = list(moves)
    body = "".join(word(part) for move in listed for part in move)
    selector = ARTEFACTS["Collection721"]["selectors"]["settle((address,address,uint256,uint256)[])"]
    return selector + word(32) + word(len(listed)) + body


def safe_transfer_1155(sender: str, to: str, token: int, amount: int) -> str:
    """Return the call data for ERC-1155's safeTransferFrom without extra data."""
    form = "safeTransferFrom(address,address,uint256,uint256,bytes)"
    return call("Collection1155", form, sender, to, token, amount, 5 * 32, 0)


def topic(form: str) -> str:
    """Return the first topic of an event's logs."""
    return "0x" + keccak(form.encode()).hex()


def address_in(topic: str) -> str:
    """Return the address at the end of a word, in lower case."""
    return "0x" + topic[-40:].lower()


def words(data: str) -> list[int]:
    """Return the 32-byte words of returned or logged data as numbers."""
    digits = data.removeprefix("0x")
    return [int(digits[at : at + 64], 16) for at in range(0, len(digits) - 63, 64)]


def list_at(data: list[int], place: int) -> list[int]:
    """Return the list whose offset is the word at `place`."""
    start = data[place] // 32
    return data[start + 1 : start + 1 + data[start]]


def reason(error: dict[str, Any]) -> str:
    """Return why a call reverted, from the node's error: the contract's sentence if there is one."""
    data = error.get("data")
    raw = bytes.fromhex(data.removeprefix("0x")) if isinstance(data, str) else b""
    selector, values = raw[:4].hex(), raw[4:]
    if selector == _ERROR and len(values) >= 64:
        length = int.from_bytes(values[32:64])
        return values[64 : 64 + length].decode(errors="replace")
    if selector == _PANIC and len(values) == 32:
        return f"panic 0x{int.from_bytes(values):02x}"
    return str(error.get("message", "reverted"))


def text(value: str) -> str:
    """Return a text as its length and its bytes, padded to whole words."""
    raw = value.encode()
    return word(len(raw)) + raw.hex().ljust(-(-len(raw) // 32) * 64, "0")
