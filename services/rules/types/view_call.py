"""A view call: a reading function of any contract, named by its signature, whose answer is compared with a value."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Self, cast

from gateways.chains.catalogue import CHAINS
from gateways.chains.view_sheet import ViewQuestion
from gateways.evm.calls import answer_path, arguments, compiled, signature
from gateways.evm.calls.abi_types import MOST_TYPES, SignatureRefused
from gateways.evm.calls.answer_path import NUMBER, TRUTH, AnswerPath, PathRefused
from gateways.evm.calls.arguments import WALLET, ArgumentsRefused
from locales import N_, _, number, pgettext
from services.core.chain_names import chain_title
from services.core.errors import FieldRefused
from services.rules.types.declaration import DetailField, Details, ExpressionRefused

AT_LEAST, AT_MOST, EXACTLY = ">=", "<=", "="
COMPARISONS = (AT_LEAST, AT_MOST, EXACTLY)
LOWEST = -(2**255)
LONGEST_SHOWN = 60
_GROUPED = re.compile(r"-?[0-9]{1,3}(?:,[0-9]{3})+")
"""A number whose commas separate thousands; any other comma may stand for a point."""
_STAKED = "stakedOf(address) view returns (uint256)"


@dataclass(frozen=True, slots=True)
class ViewCall(Details):
    """The function to call, its arguments, where the value is in its answer, and what the value must be.

    Numbers add up over a member's wallets. A truth value, a text or an exact number has to match for only one of the
    wallets.
    """

    FIELDS: ClassVar[tuple[DetailField, ...]] = (
        DetailField(
            "function", N_("Function"), placeholder=_STAKED,
            hint=N_("The function's signature as it stands in the contract's source or ABI. It must be view or pure."),
        ),
        DetailField(
            "args", N_("Arguments"), "lines", placeholder=WALLET,
            hint=N_("One a line; {wallet} stands for each wallet of a member. Write lists and tuples like [1, 2]."),
        ),
        DetailField(
            "path", N_("Part of the answer"), placeholder=N_("length, 0 or 1.2"),
            hint=N_('Empty for a single value, "length" for the size of a list, 0 for its first part.'),
        ),
        DetailField(
            "compare", N_("Compare"), "choice",
            choices=((AT_LEAST, N_("at least")), (AT_MOST, N_("at most")), (EXACTLY, N_("exactly"))),
            hint=N_("Numbers add up over all wallets of a member. Exactly holds if it holds for one of them."),
        ),
        DetailField(
            "value", N_("Value"), placeholder="1",
            hint=N_("In the contract's own units. The rule sees a change at the next sweep or re-check, not at once."),
        ),
    )  # fmt: skip

    function: str
    args: tuple[str, ...] = (WALLET,)
    path: str = ""
    compare: str = AT_LEAST
    value: str = "1"

    @classmethod
    def parse(cls, node: Mapping[str, Any]) -> Self:
        """Read the fields from the JSON of a condition. Raises ExpressionRefused for another shape."""
        function, path = node.get("function"), node.get("path")
        if not isinstance(function, str) or not function.strip():
            raise ExpressionRefused(
                _("Write the function's signature, such as {example}.").format(example=signature.EXAMPLE), "function"
            )
        if path is not None and not isinstance(path, str):
            raise ExpressionRefused(_('The path is a text, such as "length" or "1.2".'), "path")
        return cls(
            function=function,
            args=_arguments(node.get("args", [WALLET])),
            path=path or "",
            compare=_text(node.get("compare", AT_LEAST), "compare"),
            value=_text(node.get("value", ""), "value"),
        )

    def document(self) -> dict[str, Any]:
        """Return the fields as JSON, so that `parse` reads them back."""
        path = {"path": self.path} if self.path else {}
        return {"function": self.function, "args": list(self.args), **path, "compare": self.compare,
                "value": self.value}  # fmt: skip

    def checked(self, chain: str, contract: str) -> Self:
        """Return the fields normalised. Raises FieldRefused with what is wrong."""
        asked = asked_of(chain, contract, self.function, self.args, self.path)
        where = compiled.compiled(asked).path
        if self.compare not in COMPARISONS:
            raise FieldRefused(
                "compare", _("The comparison is one of {comparisons}.").format(comparisons=", ".join(COMPARISONS))
            )
        if where.sort != NUMBER and self.compare != EXACTLY:
            what = (
                _("true or false")
                if where.sort == TRUTH
                else _("a value of the type {type}").format(type=where.kind.name)
            )
            raise FieldRefused(
                "compare", _("The function answers {what}, which can only be compared with =.").format(what=what)
            )
        value = _value(where, self.compare, self.value)
        return replace(self, function=asked.function, args=asked.args, path=asked.path, value=value)

    def check_stored(self, contract: str) -> None:
        """Raise ValueError unless this version knows the comparison and can ask the contract."""
        if self.compare not in COMPARISONS:
            raise ValueError(f"no comparison is called {self.compare!r}")
        compiled.question(contract, self.function, self.args, self.path)
        self.bounds()

    def question(self, contract: str) -> ViewQuestion:
        """Return what to ask the contract. The details must come from `checked`."""
        return ViewQuestion(contract, self.function, self.args, self.path)

    @property
    def _path(self) -> AnswerPath:
        return _path_of(self.function, self.path)

    @property
    def counted(self) -> tuple[str, ...]:
        """The fields that decide how much a wallet counts for."""
        wanted = self.value if self.compare == EXACTLY else ""
        return (self.function, *self.args, self.path, wanted)

    def share(self, value: int | str) -> int:
        """Return what a wallet with this answer counts for: the number, or if it must be exact, 1 or 0 for a match."""
        if self.compare == EXACTLY:
            return int(self._plain(value) == self.value)
        return int(value)

    def _plain(self, value: int | str) -> str:
        if self._path.sort == TRUTH:
            return "true" if value else "false"
        return str(value)

    @property
    def may_fall(self) -> bool:
        """Whether a wallet whose amount is not known yet can lower the sum."""
        return self.compare != EXACTLY and self._path.signed

    def bounds(self) -> tuple[int, int | None]:
        """Return the least and the most that the numbers may add up to; for an exact value, at least one wallet."""
        if self.compare == EXACTLY:
            return 1, None
        if self.compare == AT_LEAST:
            return int(self.value), None
        return LOWEST if self.may_fall else 0, int(self.value)

    def shown(self, amount: int) -> str:
        """Return an amount as documents write it: a number, or whether the value is the wanted one."""
        if self.compare == EXACTLY:
            return "yes" if amount else "no"
        return "any" if amount == LOWEST else f"{amount:,}"

    def spoken(self, amount: int) -> str:
        """Return an amount in the reader's language: a number, or whether the value is the wanted one."""
        if self.compare == EXACTLY:
            # Translators: whether a contract gives the wanted answer, as in "Holds yes, needs yes".
            return pgettext("answer", "yes") if amount else pgettext("answer", "no")
        # Translators: any number will do.
        return pgettext("amount", "any") if amount == LOWEST else number(amount)

    def words(self, place: str, *, holds: bool = True) -> str:
        """Return the condition, or its opposite, in words; `place` is the contract and its chain."""
        if self.compare == EXACTLY:
            none = _("{call} of {place} is {value} for none of the wallets")
            # Translators: {call} is a contract's function, {place} the contract and its chain.
            said = _("{call} of {place} is {value} for one of the wallets") if holds else none
        elif self.compare == AT_LEAST:
            less = _("{call} of {place} is less than {value}")
            said = _("{call} of {place} is at least {value}") if holds else less
        else:
            more = _("{call} of {place} is more than {value}")
            said = _("{call} of {place} is at most {value}") if holds else more
        return said.format(call=self._call, place=place, value=self._shown_value)

    def name(self, chain: str, collection: str) -> str:
        """Return the automatic name of a rule with this condition alone."""
        if not self.value.strip():
            return ""
        sign = {AT_LEAST: "≥", AT_MOST: "≤"}.get(self.compare, "=")
        said = f"{self._call} {sign} {self._shown_value}"
        return f"{collection} - {said}" if collection else f"{said} on {chain_title(chain)}"

    @property
    def _call(self) -> str:
        """The function's name with its arguments, which are left out if the only one is the wallet."""
        name = self.function.removeprefix("function ").partition("(")[0].strip()
        args = ["wallet" if one == WALLET else one for one in self.args]
        call = name if args == ["wallet"] else f"{name}({', '.join(args)})"
        part = {"": "", "length": "length of "}.get(self.path, f"part {self.path} of ")
        return _short(f"{part}{call}")

    @property
    def _shown_value(self) -> str:
        return number(int(self.value)) if _is_number(self.value) else _short(self.value)


@lru_cache(maxsize=1_000)
def _path_of(function: str, path: str) -> AnswerPath:
    return answer_path.parse(path, signature.parse(function).outputs)


def asked_of(chain: str, contract: str, function: str, args: Sequence[Any], path: str) -> ViewQuestion:
    """Return the question of a view call in its canonical form. Raises FieldRefused with what is wrong."""
    if chain in CHAINS and CHAINS[chain].family != "evm":
        raise FieldRefused(
            "blockchain",
            _("A view call needs an EVM chain: programs on {chain} have no functions.").format(
                chain=chain_title(chain)
            ),
        )
    try:
        return compiled.question(contract, function, args, path)
    except SignatureRefused as fault:
        raise FieldRefused(_field(fault), str(fault)) from None


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"


def _is_number(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= 80


def _arguments(given: object) -> tuple[str, ...]:
    if isinstance(given, str):
        # No function takes so many: their number is refused later.
        given = given.split("\n", MOST_TYPES)
    if not isinstance(given, list):
        raise ExpressionRefused(_('args must be a list, such as ["{wallet}", "5"].').format(wallet=WALLET), "args")
    return tuple(_argument(one) for one in cast("list[object]", given))


def _argument(given: object) -> str:
    if isinstance(given, str):
        return given
    if isinstance(given, bool | int | list):
        return json.dumps(given, separators=(",", ":"))
    raise ExpressionRefused(_("An argument is a text, a number, true or false, or a list of them."), "args")


def _text(given: object, name: str) -> str:
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, str | int):
        return str(given)
    raise ExpressionRefused(_("{name} must be a text.").format(name=name), name)


def _field(fault: SignatureRefused) -> str:
    return "args" if isinstance(fault, ArgumentsRefused) else "path" if isinstance(fault, PathRefused) else "function"


def _value(where: AnswerPath, compare: str, given: str) -> str:
    """Return the value in the canonical form of its type."""
    if not given.strip() and where.kind.kind != "string":
        raise FieldRefused("value", _("Write the value to compare the answer with."))
    if where.sort == NUMBER:
        text = given.strip().replace("_", "")
        if _GROUPED.fullmatch(text):
            text = text.replace(",", "")
        if not _is_number(text):
            raise FieldRefused("value", _("The value is a whole number, not {value}.").format(value=given.strip()[:40]))
        number = int(text)
        if number < 0 and not where.signed:
            raise FieldRefused("value", _("The function's answer is never below 0."))
        if number <= 0 and compare == AT_LEAST and not where.signed:
            raise FieldRefused("value", _("Every wallet has at least 0. Write a value of at least 1."))
        return str(number)
    if given.strip() == WALLET:
        raise FieldRefused(
            "value", _("{wallet} is for arguments. Write the value to compare the answer with.").format(wallet=WALLET)
        )
    try:
        found = arguments.scalar(where.kind, given, _("The value"))
    except ArgumentsRefused as fault:
        raise FieldRefused("value", str(fault)) from None
    if len(found) > 2 * answer_path.LONGEST_VALUE:
        raise FieldRefused("value", _("The value is too long to be compared."))
    return found
