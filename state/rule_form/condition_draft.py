"""One condition of a rule as entered in the form, complete or not, and the requirement that it becomes."""

import re
from dataclasses import dataclass

from services.collections.trait_match import number_in
from services.rules import draft, wording
from services.rules.expression import Requirement
from services.rules.types.declaration import DetailField, Details, ExpressionRefused, RuleType
from services.rules.types.registry import RULE_TYPES, rule_type

TYPE_OPTIONS = tuple((name, one.label) for name, one in RULE_TYPES.items())
"""The types to choose from: each one's name, and its label."""
OF_COLLECTIONS = tuple(name for name, one in RULE_TYPES.items() if one.of_collection)
CALLING = tuple(name for name, one in RULE_TYPES.items() if one.source == "calls")
CONTRACT_HINTS: dict[str, str] = {name: one.contract_hint for name, one in RULE_TYPES.items()}
NOTES: dict[str, str] = {name: one.note for name, one in RULE_TYPES.items() if one.note}
"""The form's note on the contract of a type, or on how the type is read."""
OF_COINS = tuple(name for name, one in RULE_TYPES.items() if one.source == "coins")
COUNTING = tuple(name for name, one in RULE_TYPES.items() if one.counts)
WITH_TRAITS = tuple(name for name, one in RULE_TYPES.items() if one.names_trait)
WITH_IDS = tuple(name for name, one in RULE_TYPES.items() if one.names_ids)
"""The types that show the fields of the collection, the call, the minimum, the trait and the token ids."""
CHAINLESS = tuple(name for name, one in RULE_TYPES.items() if one.chainless)
"""The types that name no chain."""
DETAILS: dict[str, tuple[DetailField, ...]] = {name: one.fields for name, one in RULE_TYPES.items() if one.fields}
"""The fields that only one type has, by type."""
LIMITED = tuple(name for name in OF_COLLECTIONS if RULE_TYPES[name].limited)
"""The types that show the maximum."""
DEFAULT_TYPE = TYPE_OPTIONS[0][0]
DEFAULT_CHAIN = "ethereum"
_RANGE = re.compile(r"[+-]?[0-9.]+\s*\.\.\s*[+-]?[0-9.]+")
EXACTLY, AT_LEAST, AT_MOST, MORE, LESS, BETWEEN = "", ">=", "<=", ">", "<", ".."
COMPARISONS = (EXACTLY, AT_LEAST, AT_MOST, MORE, LESS, BETWEEN)
"""How a trait's value is compared; a range is typed as 5..10."""


@dataclass(frozen=True)
class ConditionDraft:
    """One condition as entered, complete or not."""

    type: str = DEFAULT_TYPE
    chain: str = DEFAULT_CHAIN
    contract: str = ""
    collection: str = ""
    min_tokens: str = "1"
    trait_type: str = ""
    trait_compare: str = EXACTLY
    trait_value: str = ""
    token_ids: tuple[str, ...] = ()
    max_tokens: str = ""
    more_traits: tuple[tuple[str, str], ...] = ()
    """Further traits of the same token."""
    details: tuple[tuple[str, str], ...] = ()
    """The texts typed into the fields that only its type has, by field name."""

    @property
    def kind(self) -> RuleType:
        """The declaration of its type."""
        return rule_type(self.type)

    @property
    def wanted(self) -> str:
        """The trait value as a rule stores it."""
        compare = "" if self.trait_compare == BETWEEN else self.trait_compare
        return f"{compare}{self.trait_value.strip()}" if self.trait_value.strip() else ""

    @property
    def sent(self) -> dict[str, str | list[str]]:
        """The fields that only its type has, as a rule's JSON holds them; empty ones are left out."""
        typed = dict(self.details)
        return {
            one.name: typed[one.name].split("\n") if one.kind == "lines" else typed[one.name].strip()
            for one in self.kind.fields
            if typed.get(one.name, "").strip()
        }

    @property
    def name(self) -> str:
        """The automatic name of a rule with only this condition."""
        leaf = self.leaf
        (kind, wanted), *more = self._traits
        return wording.automatic_name(
            self.type, self.chain, self.collection, kind, wanted, self.token_ids, more,
            None if leaf.max_tokens is None else (leaf.min_tokens, leaf.max_tokens), leaf.details,
        )  # fmt: skip

    @property
    def leaf(self) -> Requirement:
        """The condition as it would be stored, without any check."""
        if self.kind.chainless:
            return Requirement(self.type, "", "", details=self._parsed)
        most = _whole(self.max_tokens) if self.kind.limited else None
        # A type that does not show its minimum could not have the 0 that a maximum of 0 needs.
        least = 0 if most == 0 and not self.kind.counts else _whole(self.min_tokens) or 0
        return Requirement(
            type=self.type,
            chain=self.chain,
            contract=draft.ANY_CONTRACT if self.kind.source == "anything" else self.contract,
            min_tokens=least,
            traits=self._traits if self.kind.names_trait else (),
            token_ids=self.token_ids if self.kind.names_ids else (),
            max_tokens=most,
            details=self._parsed,
        )

    @property
    def _traits(self) -> tuple[tuple[str, str], ...]:
        """All traits; the one in the fields may be left empty once there are others."""
        typed = self.trait_type.strip(), self.wanted
        return self.more_traits if self.more_traits and not any(typed) else (*self.more_traits, typed)

    @property
    def _parsed(self) -> Details | None:
        try:
            return self.kind.details.parse(self.sent) if self.kind.details is not None else None
        except ExpressionRefused:
            return None


@dataclass(frozen=True)
class TraitView:
    """A trait that a token must have besides the one in the fields."""

    kind: str
    value: str


def with_chosen(listed: list[str], chosen: str) -> list[str]:
    """Return the choices, with the chosen one first if it is not among them."""
    return listed if not chosen or chosen in listed else [chosen, *listed]


def as_typed(value: float | None) -> str:
    """Return the value of a number field as text, digit by digit if it is whole; empty if the field was emptied."""
    if value is None:
        return ""
    return f"{value:.0f}"[:20] if value == int(value) else f"{value:.15g}"[:20]


def _whole(text: str) -> int | None:
    """Return a typed whole number; None for an empty text, -1 for one that is not a whole number."""
    if not text:
        return None
    return int(text) if text.isascii() and text.isdigit() else -1


def _is_bound(wanted: str, sign: str) -> bool:
    """Return whether a trait's value compares with a number; a text may begin with a sign too, such as `< 3 hearts`.

    With a space after the sign it is shown as a text: a token's trait may have this very text, and saving would remove
    the space.
    """
    limit = wanted.removeprefix(sign)
    return wanted.startswith(sign) and limit == limit.strip() and number_in(limit) is not None


def draft_of(leaf: Requirement, collection: str) -> ConditionDraft:
    """Return a stored condition as the form shows it."""
    *more, (kind, wanted) = leaf.traits or (("", ""),)
    compare = next((sign for sign in (AT_LEAST, AT_MOST, MORE, LESS) if _is_bound(wanted, sign)), EXACTLY)
    if _RANGE.fullmatch(wanted):
        compare = BETWEEN
    stored = leaf.details.document() if leaf.details is not None else {}
    return ConditionDraft(
        type=leaf.type, chain=leaf.chain or DEFAULT_CHAIN,
        contract="" if leaf.kind.source == "anything" else leaf.contract,
        collection=collection, min_tokens=str(leaf.min_tokens), trait_type=kind, trait_compare=compare,
        trait_value=wanted.removeprefix(compare).strip(), token_ids=leaf.token_ids,
        max_tokens="" if leaf.max_tokens is None else str(leaf.max_tokens), more_traits=tuple(more),
        details=tuple(
            (name, "\n".join(map(str, value)) if isinstance(value, list) else str(value))
            for name, value in stored.items()
            if value is not None
        ),
    )  # fmt: skip
