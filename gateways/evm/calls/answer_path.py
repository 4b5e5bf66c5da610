"""Finds the value that is asked for in a call's answer: by a path, word by word, without decoding the rest.

An answer comes from a stranger's contract: it may be short, huge, or made of offsets that lead nowhere. Only the words
on the way to the value are read, each within the answer's size, so no answer costs more than reading a few words.
"""

from collections.abc import Callable
from dataclasses import dataclass

from gateways.evm.calls.abi_types import NUMBERS, AbiType, SignatureRefused
from gateways.evm.calls.arguments import bounds
from locales import N_, _, ngettext, sentences
from locales.stored_texts import storable

LENGTH = "length"
LONGEST_PATH = 8
LONGEST_VALUE = 1_024
"""The most bytes of a text, or of `bytes`, that can be compared."""
FIRST_BYTES = 256
"""Bytes of every answer that are copied at first; a path that leads further asks for more."""
LARGEST = 65_536
"""Bytes of the largest answer that is believed: a list of 2,000 numbers."""
NUMBER, TRUTH, TEXT = "number", "truth", "text"

ViewValue = int | str
"""The value at a path: a number (1 and 0 for true and false), or a text (an address, hexadecimal, or a string)."""


class PathRefused(SignatureRefused):
    """The path does not fit what the function returns."""


class WrongAnswer(Exception):
    """The answer does not fit the signature; the message says how, as the reason why the value is unknown."""


class NotAllThere(Exception):
    """The copied part of the answer ends before the value."""


@dataclass(frozen=True, slots=True)
class AnswerPath:
    """Where the value is in a function's results, and which type it has."""

    outputs: tuple[AbiType, ...]
    steps: tuple[int, ...]
    kind: AbiType
    counts: bool = False
    """Whether the value is the number of elements of the array that the steps lead to."""

    @property
    def sort(self) -> str:
        """Whether the value is a number, a truth or a text."""
        if self.counts or self.kind.kind in NUMBERS:
            return NUMBER
        return TRUTH if self.kind.kind == "bool" else TEXT

    @property
    def signed(self) -> bool:
        """Whether the value can be below 0."""
        return not self.counts and self.kind.kind == "int"

    @property
    def text(self) -> str:
        """The path as rules have it: without the step into a function's only result."""
        steps = [str(step) for step in (self.steps if len(self.outputs) > 1 else self.steps[1:])]
        return ".".join([*steps, *([LENGTH] if self.counts else [])])

    def value(self, answer: bytes, size: int) -> ViewValue:
        """Return the value in an answer of `size` bytes; `answer` has the first of them, or all.

        Raises WrongAnswer where the answer does not fit, and NotAllThere where more of it has to be copied first.
        """
        if not size:
            raise WrongAnswer(N_("the contract gave no answer"))
        said = _Answer(answer, size)
        whole = AbiType("tuple", 0, self.outputs)
        heads = sum(one.head for one in self.outputs)
        if size < heads or (size != heads and not whole.dynamic):
            raise WrongAnswer(N_("the contract's answer is not what the signature says"))
        if size > LARGEST:
            raise WrongAnswer(storable("the contract's answer is larger than {most} bytes", most=f"{LARGEST:,}"))
        kind, at = whole, 0
        for step in self.steps:
            kind, at = _enter(said, kind, at, step)
        if self.counts:
            return _length(said, kind, at) if kind.kind == "list" else kind.size
        return _READERS[kind.kind](said, kind, at)


def parse(text: str, outputs: tuple[AbiType, ...]) -> AnswerPath:
    """Return the path of this text; a function's only result needs no step. Raises PathRefused."""
    words = text.strip().split(".") if text.strip() else []
    if len(words) > LONGEST_PATH:
        raise PathRefused(_("A path has at most {most} steps.").format(most=LONGEST_PATH))
    counts = bool(words) and words[-1].strip().lower() == LENGTH
    steps = [_number(word) for word in (words[:-1] if counts else words)]
    if len(outputs) == 1 and not (steps == [0] and not outputs[0].has_parts and not counts):
        steps.insert(0, 0)
    kind = AbiType("tuple", 0, outputs)
    for step in steps:
        kind = _part(kind, step)
    if counts:
        if kind.kind not in {"list", "row"}:
            told = _("Only an array has a length, and the path leads to {part}.")
            raise PathRefused(told.format(part=_named(kind, outputs)))
    elif kind.has_parts:
        told = _("The path leads to {part}.").format(part=_named(kind, outputs))
        raise PathRefused(sentences(told, _advice(kind)))
    return AnswerPath(outputs, tuple(steps), kind, counts)


def _number(word: str) -> int:
    if not (word.strip().isascii() and word.strip().isdigit() and len(word) <= 6):
        told = _('A path is made of numbers and dots, or ends with "{length}": 0, 1.2, {length}.')
        raise PathRefused(told.format(length=LENGTH))
    return int(word)


def _part(kind: AbiType, step: int) -> AbiType:
    if kind.kind == "list":
        return kind.parts[0]
    if not kind.has_parts:
        raise PathRefused(_("The path leads into {type}, which has no parts.").format(type=kind.name))
    count = kind.size if kind.kind == "row" else len(kind.parts)
    if step >= count:
        told = _("{type} has no part {step}. Its parts are numbered 0 to {last}.")
        raise PathRefused(told.format(type=kind.name, step=step, last=count - 1))
    return kind.parts[0] if kind.kind == "row" else kind.parts[step]


def _named(kind: AbiType, outputs: tuple[AbiType, ...]) -> str:
    if kind.parts == outputs and len(outputs) > 1:
        return ngettext("all {count} result", "all {count} results", len(outputs)).format(count=len(outputs))
    return kind.name


def _advice(kind: AbiType) -> str:
    if kind.kind == "tuple":
        return _("Choose one of its parts, 0 to {last}.").format(last=len(kind.parts) - 1)
    told = _('Write "{length}" for the number of its elements, or the place of one of them, such as 0.')
    return told.format(length=LENGTH)


class _Answer:
    """The beginning of an answer, and the size of the whole answer."""

    def __init__(self, copied: bytes, size: int) -> None:
        self._copied, self.size = copied, size

    def taken(self, at: int, count: int) -> bytes:
        """Return `count` bytes. Raises WrongAnswer beyond the answer's end, NotAllThere beyond the copied part."""
        if at + count > self.size:
            raise WrongAnswer(N_("the contract's answer is shorter than it says"))
        if at + count > len(self._copied):
            raise NotAllThere
        return self._copied[at : at + count]

    def word(self, at: int) -> int:
        """Return a word as a number."""
        return int.from_bytes(self.taken(at, 32), "big")

    def place(self, base: int, at: int) -> int:
        """Return where the offset at `at` leads, counted from `base`."""
        offset = self.word(at)
        if base + offset > self.size:
            raise WrongAnswer(N_("the contract's answer is shorter than it says"))
        return base + offset


def _enter(said: _Answer, kind: AbiType, at: int, step: int) -> tuple[AbiType, int]:
    """Return the part at a step, and where it begins."""
    if kind.kind == "tuple":
        part, base = kind.parts[step], at
        head = at + sum(one.head for one in kind.parts[:step])
    else:
        part, base = kind.parts[0], at
        if kind.kind == "list":
            count, base = _length(said, kind, at), at + 32
            if step >= count:
                told = storable(
                    "the contract's list has {count} elements, and none at {step}", count=str(count), step=step
                )
                raise WrongAnswer(told)
        head = base + step * part.head
    return part, said.place(base, head) if part.dynamic else head


def _length(said: _Answer, kind: AbiType, at: int) -> int:
    count = said.word(at)
    if at + 32 + count * kind.parts[0].head > said.size:
        raise WrongAnswer(N_("the contract's answer is shorter than it says"))
    return count


def _uint(said: _Answer, kind: AbiType, at: int) -> int:
    number = said.word(at)
    if number > bounds(kind)[1]:
        raise WrongAnswer(storable("the contract's answer is not of type {type}", type=kind.name))
    return number


def _int(said: _Answer, kind: AbiType, at: int) -> int:
    number, (least, most) = int.from_bytes(said.taken(at, 32), "big", signed=True), bounds(kind)
    if not least <= number <= most:
        raise WrongAnswer(storable("the contract's answer is not of type {type}", type=kind.name))
    return number


def _bool(said: _Answer, kind: AbiType, at: int) -> int:
    if (number := said.word(at)) > 1:
        raise WrongAnswer(N_("the contract's answer is neither true nor false"))
    return number


def _address(said: _Answer, kind: AbiType, at: int) -> str:
    word = said.taken(at, 32)
    if any(word[:12]):
        raise WrongAnswer(N_("the contract's answer is not an address"))
    return "0x" + word[12:].hex()


def _fixed(said: _Answer, kind: AbiType, at: int) -> str:
    word = said.taken(at, 32)
    if any(word[kind.size :]):
        raise WrongAnswer(storable("the contract's answer is not of type {type}", type=kind.name))
    return "0x" + word[: kind.size].hex()


def _content(said: _Answer, at: int) -> bytes:
    length = said.word(at)
    if length > LONGEST_VALUE:
        raise WrongAnswer(storable("the contract's answer is longer than {most} bytes", most=f"{LONGEST_VALUE:,}"))
    return said.taken(at + 32, length)


def _string(said: _Answer, kind: AbiType, at: int) -> str:
    try:
        return _content(said, at).decode()
    except UnicodeDecodeError:
        raise WrongAnswer(N_("the contract's answer is not text")) from None


_READERS: dict[str, Callable[[_Answer, AbiType, int], ViewValue]] = {
    "uint": _uint,
    "int": _int,
    "bool": _bool,
    "address": _address,
    "fixed": _fixed,
    "bytes": lambda said, kind, at: "0x" + _content(said, at).hex(),
    "string": _string,
}
