"""Rules read from an imported document, before roles are looked up, and the entries that became no rule."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from gateways.chains.catalogue import CHAINS, form_order
from gateways.transport.plain_text import plain
from locales import N_, _, listed, number
from services.core.chain_names import chain_title
from services.core.json_view import json_view
from services.rules.documents.json_documents import DocumentRefused, is_given, shown
from services.rules.draft import LONGEST_TRAIT

MOST_RULES = 200
"""Maximum entries of one document."""
MOST_PARTS = 1_000
"""Maximum entries that are read of any other list, such as communities and platforms."""
_LARGEST_COUNT = 2**31 - 1
_NAMED_FIELDS = 8
_LONGEST_LABEL = 200
_DIGITS = 80


class Unmapped(Exception):
    """An entry has no exact counterpart here; the text says why, as a sentence."""


@json_view
class SkippedEntry:
    """An entry that became no rule: its label in the document, and why it became none."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class ParsedRule:
    """An entry that can become a rule: its label in the document, its terms, and the role that it names.

    `number` counts the rules of the document from 1. `role_names` are looked for if no role has the `role_id`.
    """

    what: str
    name: str
    expression: dict[str, Any]
    role_id: str
    role_names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    removal_mode: str = "now"
    removal_hours: Any = 0
    role_color: str | None = None
    takes_over: bool = False
    delegated: bool = False
    number: int = 0


ParsedEntry = ParsedRule | SkippedEntry


def numbered(entries: Iterable[ParsedEntry]) -> list[ParsedEntry]:
    """Return the entries with the rules among them numbered."""
    found: list[ParsedEntry] = []
    place = 0
    for one in entries:
        if isinstance(one, ParsedRule):
            place += 1
            one = replace(one, number=place)
        found.append(one)
    return found


RULE, ROLE, COMMUNITY = N_("Rule {number}"), N_("Role {number}"), N_("Community {number}")
"""Kinds of entries."""


def label(kind: str, place: int, name: object) -> str:
    """Return the label of an entry for a sentence, such as `Rule 3 “Whales”`; `kind` is RULE, ROLE or COMMUNITY."""
    text = plain(name[:_LONGEST_LABEL], 60) if isinstance(name, str) else ""
    kind = _(kind).format(number=place)
    return _("{entry} “{name}”").format(entry=kind, name=text) if text else kind


def check_number(found: int, refusal: str) -> None:
    """Raise DocumentRefused for more than MOST_RULES; the refusal has places for `found` and `most`."""
    if found > MOST_RULES:
        raise DocumentRefused(_(refusal).format(found=number(found), most=MOST_RULES))


TOO_MANY_RULES = N_("The document has {found} rules; an import takes at most {most}.")


def unreadable(field: str) -> Unmapped:
    """Return the refusal of an entry with a field of an unknown shape: without it the rule may mean something else."""
    return Unmapped(_("Its field {field} cannot be read.").format(field=shown(field)))


def contradiction(one: str, other: str) -> Unmapped:
    """Return the refusal of an entry in which two fields for the same differ."""
    return Unmapped(_("It says two things: {one} and {other} differ.").format(one=shown(one), other=shown(other)))


def coin_with_tokens() -> Unmapped:
    """Return the refusal of a coin's condition that names single tokens."""
    return Unmapped(_("It asks for token IDs or traits of a coin, which has none."))


def left_out(names: Sequence[str]) -> tuple[str, ...]:
    """Return the note about fields that were not used, if there are any."""
    if not names:
        return ()
    told = [shown(name) for name in names[:_NAMED_FIELDS]]
    if len(names) > len(told):
        told.append(_("{count} more").format(count=len(names) - len(told)))
    return (_("Not used, because their meaning is not known: {fields}.").format(fields=listed(told)),)


def chain_by_id(chain_id: object) -> str:
    """Return our name of the chain with an EVM chain id. Raises Unmapped."""
    if isinstance(chain_id, str) and chain_id.strip().isascii() and chain_id.strip().isdigit() and len(chain_id) < 20:
        chain_id = int(chain_id)
    return _chain(chain_id if isinstance(chain_id, int) and not isinstance(chain_id, bool) else None, chain_id)


def chain_by_name(name: object, ids: Mapping[str, int]) -> str:
    """Return our name of a chain from another bot's name of it; `ids` has that bot's chain ids. Raises Unmapped."""
    return _chain(ids.get(name) if isinstance(name, str) else None, name)


def _chain(chain_id: int | None, given: object) -> str:
    """Return our name of the EVM chain with this id; a refusal shows what the document has for it."""
    if chain_id is not None:
        for key, chain in CHAINS.items():
            if chain.family == "evm" and chain.chain_id == chain_id:
                return key
    chains = listed(chain_title(key) for key in form_order())
    raise Unmapped(
        _("Its chain, {chain}, is not one of the chains here: {chains}.").format(chain=shown(given), chains=chains)
    )


def no_such_type(given: object) -> Unmapped:
    """Return the refusal of a type that no rule here has, or of an entry without one."""
    if not is_given(given):
        return Unmapped(_("It names no type."))
    return Unmapped(_("Its type, {type}, is not one that a rule here asks for.").format(type=shown(given)))


# Translators: these three are {field} in "Its {field}, {value}, is not a whole number."
MINIMUM, MAXIMUM, ANSWER_PART = N_("minimum"), N_("maximum"), N_("part of the answer")
REQUIREMENTS, ATTRIBUTE = N_("number of requirements"), N_("attribute")


def count(value: object, what: str) -> int | None:
    """Return a whole number of tokens, None for no value. Raises Unmapped for anything else."""
    if value is None or value == "":
        return None
    found = _number(value)
    if found is None or found != found.to_integral_value() or not 0 <= found <= _LARGEST_COUNT:
        raise Unmapped(_("Its {field}, {value}, is not a whole number.").format(field=_(what), value=shown(value)))
    return int(found)


def truth(value: object, field: str) -> bool:
    """Return whether a field is true, false for no value. Raises Unmapped if it is neither true nor false."""
    if value is None or value == "":
        return False
    text = str(value).strip().lower() if isinstance(value, bool | str) else ""
    if text not in {"true", "false"}:
        raise Unmapped(_("Its field {field} is neither true nor false.").format(field=shown(field)))
    return text == "true"


def coins(value: object, what: str) -> str | None:
    """Return an amount of whole coins as a plain decimal text, None for no value. Raises Unmapped otherwise."""
    if value is None or value == "":
        return None
    found = _number(value)
    if found is None or found < 0:
        raise Unmapped(_("Its {field}, {value}, is not an amount of coins.").format(field=_(what), value=shown(value)))
    text = format(found, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _number(value: object) -> Decimal | None:
    """Return the number that a value is or writes out; None for any other value, or more digits than an amount has."""
    if isinstance(value, bool) or not isinstance(value, int | str | Decimal):
        return None
    if isinstance(value, str) and (len(value) > _DIGITS or not value.isascii() or "_" in value):
        return None
    try:
        found = Decimal(value)
    except ArithmeticError:
        return None
    if not found.is_finite():
        return None
    # The exponent is checked first: writing a number out takes as many digits as its exponent.
    digits, exponent = len(found.as_tuple().digits), found.as_tuple().exponent
    fits = isinstance(exponent, int) and abs(exponent) <= _DIGITS and digits <= _DIGITS
    return found if fits else None


def of_tokens(chain: str, contract: str, least: int, most: int | None) -> dict[str, Any]:
    """Return the condition on a number of a collection's tokens. Raises Unmapped if everybody would meet it."""
    if least == 0 and most is None:
        raise Unmapped(_("It asks for at least 0 tokens, which everybody has."))
    return {"type": "basic", "chain": chain, "contract": contract, "minTokens": least} | _at_most(least, most)


def of_single_tokens(chain: str, contract: str, ids: Sequence[str], least: int, most: int | None) -> dict[str, Any]:
    """Return the condition on certain tokens of a collection. Raises Unmapped if it asks for several of them."""
    if least != 1:
        raise Unmapped(
            _("It asks for {count} of certain token IDs; a rule here asks for any one of them.").format(count=least)
        )
    leaf = {"type": "token_id", "chain": chain, "contract": contract, "minTokens": 1, "tokenIds": list(ids)}
    return leaf | _at_most(least, most)


def of_traits(
    chain: str, contract: str, traits: Sequence[tuple[str, str]], least: int, most: int | None
) -> dict[str, Any]:
    """Return the condition on tokens with all of these traits. Raises Unmapped if everybody would meet it."""
    if least == 0 and most is None:
        raise Unmapped(_("It asks for at least 0 tokens, which everybody has."))
    leaf: dict[str, Any] = {"type": "trait", "chain": chain, "contract": contract, "minTokens": least}
    leaf["traits"] = [{"type": kind, "value": value} for kind, value in traits]
    return leaf | _at_most(least, most)


def _at_most(least: int, most: int | None) -> dict[str, Any]:
    if most is None:
        return {}
    if most < least:
        raise Unmapped(_("Its maximum of {most} is below its minimum of {least}.").format(most=most, least=least))
    return {"maxTokens": most}


def exact_trait(kind: object, value: object) -> tuple[str, str]:
    """Return a trait and the value that it must have exactly. Raises Unmapped for one that means something else here.

    A rule here compares numbers where a value begins with a sign or has two dots.
    """
    if isinstance(value, Decimal) and not value.is_finite():
        raise Unmapped(_("Its traits cannot be read."))  # the document has a number with more digits than are read
    value = str(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else value
    if not isinstance(kind, str) or not isinstance(value, str) or not kind.strip() or not value.strip():
        raise Unmapped(_("One of its traits has no type or no value."))
    if max(len(kind), len(value)) > LONGEST_TRAIT:
        raise Unmapped(_("One of its traits has more than {most} characters.").format(most=LONGEST_TRAIT))
    if value.strip()[0] in "<>≤≥" or ".." in value:
        raise Unmapped(_("The value {value} of a trait would be read as a comparison here.").format(value=shown(value)))
    return kind, value
