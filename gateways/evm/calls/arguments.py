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
from locales import N_, _, ngettext
from locales import number as shown

WALLET = "{wallet}"
"""Stands for the address of the wallet that is asked about."""
LONGEST_TEXT = 2_000
MOST_ITEMS = 200
MOST_BYTES = 4_096
"""Call data of one call."""
IN_BRACKETS = N_("{what} is a list in brackets, such as [1, 2].")
_ADDRESS = re.compile(r"0[xX][0-9a-fA-F]{40}")
_WHOLE = re.compile(r"-?[0-9]{1,78}")
_HEX = re.compile(r"0[xX](?:[0-9a-fA-F]{2})*")
_ONE_WALLET, _OTHER_WALLET = "0x" + "11" * 20, "0x" + "ee" * 20


class ArgumentsRefused(SignatureRefused):
    """The arguments do not fit the function."""


@dataclass(frozen=True, slots=True)
class CallData:
    """A call's data without the wallet, which is still to be put, as a word, at each of the places."""

    template: bytes
    places: tuple[int, ...]

    def of(self, owner: bytes) -> bytes:
        """Return the call data for a wallet of 20 bytes."""
        data = bytearray(self.template)
        for place in self.places:
            data[place : place + 32] = bytes(12) + owner
        return bytes(data)


def normal(signature: Signature, given: Sequence[Any]) -> tuple[str, ...]:
    """Return the arguments in their normal form. Raises ArgumentsRefused, also where none of them is the wallet."""
    if len(given) != len(signature.inputs):
        raise ArgumentsRefused(_counted(signature.name, len(signature.inputs), len(given)))
    found = list[str]()
    for place, (kind, value) in enumerate(zip(signature.inputs, given, strict=True), 1):
        value = _value(kind, value, _("Argument {place}").format(place=place))
        found.append(value if isinstance(value, str) else json.dumps(value, separators=(",", ":")))
    data = call_data(signature, found)
    if not data.places:
        told = _("One argument of the type {address} must be {wallet}: else all wallets get one answer.")
        raise ArgumentsRefused(told.format(address="address", wallet=WALLET))
    if len(data.template) > MOST_BYTES:
        raise ArgumentsRefused(_("The arguments take more than {most} bytes.").format(most=shown(MOST_BYTES)))
    return tuple(found)


def call_data(signature: Signature, args: Sequence[str]) -> CallData:
    """Return the call data of arguments in their normal form."""
    one, other = (_encoded(signature, args, wallet) for wallet in (_ONE_WALLET, _OTHER_WALLET))
    places = [at for at in range(4, len(one), 32) if one[at : at + 32] != other[at : at + 32]]
    return CallData(one, tuple(places))


def _encoded(signature: Signature, args: Sequence[str], wallet: str) -> bytes:
    values = [_python(kind, _parsed(kind, arg, ""), wallet) for kind, arg in zip(signature.inputs, args, strict=True)]
    return signature.selector + encode([kind.name for kind in signature.inputs], values)


def _counted(name: str, wanted: int, given: int) -> str:
    """Return the sentence that says how many arguments a function takes, and how many are given."""
    if not wanted:
        return _("{name} takes no arguments, and {given} are given.").format(name=name, given=given)
    if not given:
        told = ngettext(
            "{name} takes {count} argument, and none is given.", "{name} takes {count} arguments, and none is given.",
            wanted,
        )  # fmt: skip
        return told.format(name=name, count=wanted)
    told = ngettext(
        "{name} takes {count} argument; the number given is {given}.",
        "{name} takes {count} arguments; the number given is {given}.",
        wanted,
    )
    return told.format(name=name, count=wanted, given=given)


def _parsed(kind: AbiType, value: Any, where: str) -> Any:
    """Return the value; a text for a type with parts is parsed as JSON."""
    if not kind.has_parts or not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise ArgumentsRefused(_(IN_BRACKETS).format(what=f"{where} ({kind.name})")) from None


def _value(kind: AbiType, given: object, where: str) -> Any:
    """Return a value in its normal form: a text, or a list of such values."""
    what = f"{where} ({kind.name})"
    if isinstance(given, str) and len(given) > LONGEST_TEXT:
        told = _("{what} has more than {most} characters.")
        raise ArgumentsRefused(told.format(what=what, most=shown(LONGEST_TEXT)))
    if kind.has_parts:
        return _list(kind, _parsed(kind, given, where), where)
    if isinstance(given, bool):
        given = "true" if given else "false"
    elif isinstance(given, int):
        given = str(given)
    if not isinstance(given, str):
        raise ArgumentsRefused(_("{what} must be a text or a number.").format(what=what))
    return scalar(kind, given, what)


def _list(kind: AbiType, given: object, where: str) -> list[Any]:
    what = f"{where} ({kind.name})"
    if not isinstance(given, list):
        raise ArgumentsRefused(_(IN_BRACKETS).format(what=what))
    items = cast("list[object]", given)
    needed = len(kind.parts) if kind.kind == "tuple" else kind.size
    if kind.kind != "list" and len(items) != needed:
        told = ngettext(
            "{what} has {count} value; the number given is {given}.",
            "{what} has {count} values; the number given is {given}.",
            needed,
        )
        raise ArgumentsRefused(told.format(what=what, count=needed, given=len(items)))
    if len(items) > MOST_ITEMS:
        raise ArgumentsRefused(_("{what} has more than {most} values.").format(what=what, most=MOST_ITEMS))
    kinds = kind.parts if kind.kind == "tuple" else kind.parts * len(items)
    return [_value(part, item, where) for part, item in zip(kinds, items, strict=True)]


def scalar(kind: AbiType, given: str, what: str) -> str:
    """Return a text in the normal form of its type; `what` begins the sentence of ArgumentsRefused."""
    text = given if kind.kind == "string" else given.strip()
    if kind.kind in NUMBERS:
        return _number(kind, text, what)
    if kind.kind == "bool":
        if text.lower() not in {"true", "false"}:
            raise ArgumentsRefused(_("{what} is {true} or {false}.").format(what=what, true="true", false="false"))
        return text.lower()
    if kind.kind == "address":
        return text if text == WALLET else _address(text, what)
    if kind.kind != "string":
        if not _HEX.fullmatch(text):
            raise ArgumentsRefused(_("{what} is hexadecimal and begins with 0x.").format(what=what))
        if kind.kind == "fixed" and len(text) != 2 + 2 * kind.size:
            told = _("{what} has {count} digits after 0x.")
            raise ArgumentsRefused(told.format(what=what, count=2 * kind.size))
        return text.lower()
    return text


def _number(kind: AbiType, text: str, what: str) -> str:
    if text[:2].lower() == "0x" and re.fullmatch(r"0[xX][0-9a-fA-F]{1,64}", text):
        number = int(text, 16)
    elif _WHOLE.fullmatch(text):
        number = int(text)
    else:
        if not text:
            raise ArgumentsRefused(_("{what} is empty: write a whole number.").format(what=what))
        raise ArgumentsRefused(_("{what} is a whole number, not {text}.").format(what=what, text=text[:40]))
    least, most = bounds(kind)
    if not least <= number <= most:
        raise ArgumentsRefused(_("{what} is from {least} to {most}.").format(what=what, least=least, most=most))
    return str(number)


def bounds(kind: AbiType) -> tuple[int, int]:
    """Return the least and the greatest number of a type."""
    return (0, 2**kind.size - 1) if kind.kind == "uint" else (-(2 ** (kind.size - 1)), 2 ** (kind.size - 1) - 1)


def _address(text: str, what: str) -> str:
    if not _ADDRESS.fullmatch(text):
        told = _("{what} is {wallet}, or an address: 0x and 40 of 0-9 and a-f.")
        raise ArgumentsRefused(told.format(what=what, wallet=WALLET))
    digits = text[2:]
    if digits not in {digits.lower(), digits.upper()} and not is_checksum_address("0x" + digits):
        raise ArgumentsRefused(_("{what} is an address whose capital letters do not fit.").format(what=what))
    return "0x" + digits.lower()


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def _is_true(text: str) -> bool:
    return text == "true"


_PYTHON: Mapping[str, Callable[[str], Any]] = {
    "uint": int, "int": int, "bool": _is_true, "fixed": _bytes, "bytes": _bytes, "string": str,
}  # fmt: skip


def _python(kind: AbiType, value: Any, wallet: str) -> Any:
    """Return a value in its normal form as the encoder takes it."""
    if kind.kind == "address":
        return wallet if value == WALLET else value
    if not kind.has_parts:
        return _PYTHON[kind.kind](value)
    kinds = kind.parts if kind.kind == "tuple" else kind.parts * len(value)
    return [_python(part, item, wallet) for part, item in zip(kinds, value, strict=True)]
