"""The arguments of a view call as texts, and the call data that they make for any wallet."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from eth_abi.abi import encode
from eth_utils.address import is_checksum_address

from gateways.evm.calls.abi_types import NUMBERS, AbiType, SignatureRefused
from gateways.evm.calls.signature import Signature

WALLET = "{wallet}"
"""Stands for the address of the wallet that is asked about."""
LONGEST_TEXT = 2_000
MOST_ITEMS = 200
MOST_BYTES = 4_096
"""Call data of one call."""
_ADDRESS = re.compile(r"0[xX][0-9a-fA-F]{40}")
_WHOLE = re.compile(r"-?[0-9]{1,78}")
_HEX = re.compile(r"0[xX](?:[0-9a-fA-F]{2})*")
_ONE_WALLET, _OTHER_WALLET = "0x" + "11" * 20, "0x" + "ee" * 20


class ArgumentsRefused(SignatureRefused):
    """The arguments do not fit the function."""


@dataclass(frozen=True, slots=True)
class CallData:
    """A call's data for a wallet that is not filled in; the wallet is put, as a word, at each of the places."""

    template: bytes
    places: tuple[int, ...]

    def of(self, owner: bytes) -> bytes:
        """Return the call data for a wallet of 20 bytes."""
        data = bytearray(self.template)
        for place in self.places:
            data[place : place + 32] = bytes(12) + owner
        return bytes(data)


def normal(signature: Signature, given: Sequence[Any]) -> tuple[str, ...]:
    """Return the arguments in one way of writing. Raises ArgumentsRefused, also where no wallet is among them."""
    if len(given) != len(signature.inputs):
        raise ArgumentsRefused(
            f"{signature.name} takes {_arguments(len(signature.inputs))}, and {len(given) or 'none'} "
            f"{'is' if len(given) == 1 else 'are'} given."
        )
    found = list[str]()
    for place, (kind, value) in enumerate(zip(signature.inputs, given, strict=True), 1):
        value = _value(kind, value, f"Argument {place}")
        found.append(value if isinstance(value, str) else json.dumps(value, separators=(",", ":")))
    data = call_data(signature, found)
    if not data.places:
        raise ArgumentsRefused(f"One argument of the type address must be {WALLET}: else all wallets get one answer.")
    if len(data.template) > MOST_BYTES:
        raise ArgumentsRefused(f"The arguments take more than {MOST_BYTES:,} bytes.")
    return tuple(found)


def call_data(signature: Signature, args: Sequence[str]) -> CallData:
    """Return the call data of normal arguments."""
    one, other = (_encoded(signature, args, wallet) for wallet in (_ONE_WALLET, _OTHER_WALLET))
    places = [at for at in range(4, len(one), 32) if one[at : at + 32] != other[at : at + 32]]
    return CallData(one, tuple(places))


def _encoded(signature: Signature, args: Sequence[str], wallet: str) -> bytes:
    values = [_python(kind, _parsed(kind, arg, ""), wallet) for kind, arg in zip(signature.inputs, args, strict=True)]
    return signature.selector + encode([kind.name for kind in signature.inputs], values)


def _arguments(count: int) -> str:
    return {0: "no arguments", 1: "1 argument"}.get(count, f"{count} arguments")


def _parsed(kind: AbiType, value: Any, where: str) -> Any:
    """Return what a text holds where the type is made of parts."""
    if not kind.has_parts or not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise ArgumentsRefused(f"{where} ({kind.name}) is a list in brackets, such as [1, 2].") from None


def _value(kind: AbiType, given: object, where: str) -> Any:
    """Return a value in one way of writing: a text, or a list of them."""
    what = f"{where} ({kind.name})"
    if isinstance(given, str) and len(given) > LONGEST_TEXT:
        raise ArgumentsRefused(f"{what} has more than {LONGEST_TEXT:,} characters.")
    if kind.has_parts:
        return _list(kind, _parsed(kind, given, where), where)
    if isinstance(given, bool):
        given = "true" if given else "false"
    elif isinstance(given, int):
        given = str(given)
    if not isinstance(given, str):
        raise ArgumentsRefused(f"{what} must be a text or a number.")
    return scalar(kind, given, what)


def _list(kind: AbiType, given: object, where: str) -> list[Any]:
    what = f"{where} ({kind.name})"
    if not isinstance(given, list):
        raise ArgumentsRefused(f"{what} is a list in brackets, such as [1, 2].")
    items = cast("list[object]", given)
    needed = len(kind.parts) if kind.kind == "tuple" else kind.size
    if kind.kind != "list" and len(items) != needed:
        raise ArgumentsRefused(f"{what} has {needed} values, and {len(items)} are given.")
    if len(items) > MOST_ITEMS:
        raise ArgumentsRefused(f"{what} has more than {MOST_ITEMS} values.")
    kinds = kind.parts if kind.kind == "tuple" else kind.parts * len(items)
    return [_value(part, item, where) for part, item in zip(kinds, items, strict=True)]


def scalar(kind: AbiType, given: str, what: str) -> str:
    """Return a text in the one way of writing of its type; `what` begins the sentence of ArgumentsRefused."""
    text = given if kind.kind == "string" else given.strip()
    if kind.kind in NUMBERS:
        return _number(kind, text, what)
    if kind.kind == "bool":
        if text.lower() not in {"true", "false"}:
            raise ArgumentsRefused(f"{what} is true or false.")
        return text.lower()
    if kind.kind == "address":
        return text if text == WALLET else _address(text, what)
    if kind.kind != "string":
        if not _HEX.fullmatch(text):
            raise ArgumentsRefused(f"{what} is hexadecimal and begins with 0x.")
        if kind.kind == "fixed" and len(text) != 2 + 2 * kind.size:
            raise ArgumentsRefused(f"{what} has {2 * kind.size} digits after 0x.")
        return text.lower()
    return text


def _number(kind: AbiType, text: str, what: str) -> str:
    if text[:2].lower() == "0x" and re.fullmatch(r"0[xX][0-9a-fA-F]{1,64}", text):
        number = int(text, 16)
    elif _WHOLE.fullmatch(text):
        number = int(text)
    else:
        raise ArgumentsRefused(f"{what} is a whole number, not {text[:40] or 'nothing'}.")
    least, most = bounds(kind)
    if not least <= number <= most:
        raise ArgumentsRefused(f"{what} is from {least} to {most}.")
    return str(number)


def bounds(kind: AbiType) -> tuple[int, int]:
    """Return the least and the greatest number of a type."""
    return (0, 2**kind.size - 1) if kind.kind == "uint" else (-(2 ** (kind.size - 1)), 2 ** (kind.size - 1) - 1)


def _address(text: str, what: str) -> str:
    if not _ADDRESS.fullmatch(text):
        raise ArgumentsRefused(f"{what} is {WALLET}, or an address: 0x and 40 of 0-9 and a-f.")
    digits = text[2:]
    if digits not in {digits.lower(), digits.upper()} and not is_checksum_address("0x" + digits):
        raise ArgumentsRefused(f"The capital letters of the address in {what[0].lower()}{what[1:]} don't fit.")
    return "0x" + digits.lower()


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def _is_true(text: str) -> bool:
    return text == "true"


_PYTHON: Mapping[str, Callable[[str], Any]] = {
    "uint": int, "int": int, "bool": _is_true, "fixed": _bytes, "bytes": _bytes, "string": str,
}  # fmt: skip


def _python(kind: AbiType, value: Any, wallet: str) -> Any:
    """Return a normal value as the encoder takes it."""
    if kind.kind == "address":
        return wallet if value == WALLET else value
    if not kind.has_parts:
        return _PYTHON[kind.kind](value)
    kinds = kind.parts if kind.kind == "tuple" else kind.parts * len(value)
    return [_python(part, item, wallet) for part, item in zip(kinds, value, strict=True)]
