"""A view function's signature as people write or paste it: `stakedOf(address,uint256) view returns (uint256)`."""

import re
from dataclasses import dataclass
from functools import lru_cache

from eth_utils.crypto import keccak

from gateways.evm.calls.abi_types import DEEPEST, AbiType, SignatureRefused, array_of, check_size, elementary
from locales import _

LONGEST = 600
_TOKEN = re.compile(r"\s*([A-Za-z_$][A-Za-z0-9_$]*|[0-9]{1,5}|[()\[\],;])")
_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_ATTRIBUTES = frozenset({"external", "public", "virtual", "override"})
_READS = frozenset({"view", "pure", "constant"})
_AFTER_A_TYPE = frozenset({"memory", "calldata", "payable"})
EXAMPLE = "stakedOf(address) view returns (uint256)"


@dataclass(frozen=True, slots=True)
class Signature:
    """A view function: its name, what it takes, and what it returns."""

    name: str
    inputs: tuple[AbiType, ...]
    outputs: tuple[AbiType, ...]

    @property
    def selector(self) -> bytes:
        """The first four bytes of its call data."""
        return keccak(text=f"{self.name}({_joined(self.inputs)})")[:4]

    @property
    def text(self) -> str:
        """The signature in its normal form."""
        return f"{self.name}({_joined(self.inputs)}) view returns ({_joined(self.outputs)})"


def _joined(types: tuple[AbiType, ...]) -> str:
    return ",".join(one.name for one in types)


@lru_cache(maxsize=1_000)
def parse(text: str) -> Signature:
    """Parse a signature, which may contain parameters' names and other words of Solidity. Raises SignatureRefused."""
    if not text.strip():
        raise SignatureRefused(_("Write the function's signature, such as {example}.").format(example=EXAMPLE))
    if len(text) > LONGEST:
        raise SignatureRefused(_("A signature has at most {most} characters.").format(most=LONGEST))
    return _SignatureReader(_tokens(text)).function()


def _tokens(text: str) -> list[str]:
    found, at, end = list[str](), 0, len(text.rstrip())
    while at < end:
        token = _TOKEN.match(text, at)
        if token is None:
            told = _("{text} cannot stand in a signature such as {example}.")
            raise SignatureRefused(told.format(text=repr(text[at : at + 10].strip()), example=EXAMPLE))
        found.append(token[1])
        at = token.end()
    return found


def _out_of_place(found: str, wanted: str) -> SignatureRefused:
    told = _("There is {found} where {wanted} should be. Write the signature like {example}.")
    return SignatureRefused(told.format(found=found, wanted=wanted, example=EXAMPLE))


class _SignatureReader:
    """Reads the tokens of a signature from the left."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def function(self) -> Signature:
        """Read the whole signature."""
        if self._next_is("function"):
            self._at += 1
        name = self._take()
        if not _NAME.fullmatch(name) or not self._next_is("("):
            told = _("A signature begins with the function's name and a bracket: {example}.")
            raise SignatureRefused(told.format(example=EXAMPLE))
        inputs = self._types(1)
        self._attributes()
        if not self._next_is("returns"):
            raise SignatureRefused(
                _("Say what the function returns: {example}.").format(example=f"{name}(…) view returns (uint256)")
            )
        self._at += 1
        outputs = self._types(1)
        if self._next_is(";"):
            self._at += 1
        if self._at < len(self._tokens):
            told = _("Nothing can follow what the function returns, but {word} does.")
            raise SignatureRefused(told.format(word=self._tokens[self._at]))
        if not outputs:
            raise SignatureRefused(_("The function must return something."))
        check_size(inputs, _("arguments"))
        check_size(outputs, _("results"))
        return Signature(name, inputs, outputs)

    def _next_is(self, token: str) -> bool:
        return self._at < len(self._tokens) and self._tokens[self._at] == token

    def _take(self) -> str:
        if self._at >= len(self._tokens):
            raise SignatureRefused(_("The signature ends too early. Write it like {example}.").format(example=EXAMPLE))
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, token: str) -> None:
        if (found := self._take()) != token:
            raise _out_of_place(found, token)

    def _attributes(self) -> None:
        """Read the words between the arguments and the results; the function must be one that only reads."""
        said = set[str]()
        while self._at < len(self._tokens) and not self._next_is("returns"):
            word = self._take()
            if word in {"payable", "nonpayable"}:
                raise SignatureRefused(_("Only functions that read can be called: view or pure ones."))
            if word not in _ATTRIBUTES | _READS:
                raise _out_of_place(word, "view")
            said.add(word)
        if not said & _READS and self._next_is("returns"):
            raise SignatureRefused(
                _("Only functions that read can be called. If it is one, write {view} before {returns}.").format(
                    view="view", returns="returns"
                )
            )

    def _types(self, depth: int) -> tuple[AbiType, ...]:
        """Read types between brackets."""
        self._expect("(")
        found = list[AbiType]()
        while not self._next_is(")"):
            if found:
                self._expect(",")
            found.append(self._type(depth))
            self._rest_of_parameter()
        self._at += 1
        return tuple(found)

    def _type(self, depth: int) -> AbiType:
        if depth > DEEPEST:
            raise SignatureRefused(_("The types are nested more than {most} levels deep.").format(most=DEEPEST))
        if self._next_is("tuple"):
            self._at += 1
        if self._next_is("("):
            parts = self._types(depth + 1)
            if not parts:
                raise SignatureRefused(_("A tuple needs at least one type."))
            found = AbiType("tuple", 0, parts)
        else:
            found = elementary(self._take())
        while self._next_is("["):
            self._at += 1
            length = None if self._next_is("]") else self._take()
            if length is not None and not length.isdigit():
                raise SignatureRefused(_("An array's length is a number, not {text}.").format(text=length[:20]))
            self._expect("]")
            found = array_of(found, None if length is None else int(length))
        return found

    def _rest_of_parameter(self) -> None:
        """Skip a parameter's data location and its name."""
        while self._at < len(self._tokens) and self._tokens[self._at] in _AFTER_A_TYPE:
            self._at += 1
        if self._at < len(self._tokens) and _NAME.fullmatch(self._tokens[self._at]):
            self._at += 1
