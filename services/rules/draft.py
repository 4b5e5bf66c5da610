"""A rule as an admin fills it in: validation with the exact messages, and the automatic names."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, cast

from gateways.chains.balance_sheet import NATIVE
from gateways.chains.catalogue import CHAINS, form_order
from gateways.transport.plain_text import one_line, plain
from locales import N_, _, language
from services.collections.trait_match import COMPARED, number_in, range_in
from services.core.addresses import AddressRefused, is_solana, parse_evm
from services.core.chain_names import chain_title
from services.core.errors import FieldRefused
from services.rules.expression import (
    ANY_CONTRACT,
    MOST_TRAITS,
    AtLeast,
    Expression,
    Not,
    Requirement,
    parse,
    requirements,
)
from services.rules.rule_terms import REMOVAL_MODES
from services.rules.types import token_ids
from services.rules.types.address_list import NAME as ADDRESS_LIST
from services.rules.types.declaration import ExpressionRefused, RuleType
from services.rules.types.registry import RULE_TYPES, rule_type
from services.rules.types.submitted_address_lists import GivenLists
from settings import settings

TYPES = tuple(RULE_TYPES)
MOST_TOKENS = 2**31 - 1
WHOLE_TOKENS = N_("Minimum tokens must be a whole number")
SOLANA = "solana"
_BOUND = re.compile(r"(>=|<=|=>|=<|≥|≤)\s*")
_COLOR = re.compile(r"#[0-9A-Fa-f]{6}")
_NUMBER = re.compile(r"[+-]?[0-9]{1,40}(?:\.[0-9]{1,40})?")
_CONTROLS = frozenset({"Cc", "Zl", "Zp"})
"""Unicode's categories of control characters and of line and paragraph separators."""
STATES_OF_NEW = ("active", "shadow")
LONGEST_NAME = 400
LONGEST_TRAIT = 200
LONGEST_GRACE_HOURS = 24 * 90


@dataclass(frozen=True, slots=True)
class RuleDraft:
    """A rule as the form or a program sends it, unvalidated."""

    rule_name: str
    contract_address: str
    blockchain: str
    verification_type: str
    role_id: str
    server_id: int
    min_tokens: Any = 1
    role_color: str | None = None
    trait_type: str | None = None
    trait_value: str | None = None
    token_ids: tuple[str, ...] = ()
    max_tokens: Any = None
    more_traits: tuple[tuple[str, str], ...] = ()
    """Further traits that the same token must have."""
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The fields that only its type has, as `Details.parse` reads them."""
    expression: Any = None
    removal_mode: str = "now"
    removal_hours: Any = 0
    shadow: bool = False
    state: str = ""
    """The state that a program gives a new rule, if any; shadow is `shadow` as well."""
    takes_over: bool = False
    delegated: bool = False


def check(draft: RuleDraft) -> RuleDraft:
    """Return the draft with its texts trimmed; raises FieldRefused for the first invalid field.

    The specification fixes the order and the sentences. An expression overrides the flat fields, which describe one
    condition and then repeat the expression's first one.
    """
    # Cut first: a name can be as long as a body.
    name = one_line(draft.rule_name[: 4 * LONGEST_NAME])
    if not name:
        raise FieldRefused("ruleName", _("Rule name is required"))
    if len(name) > LONGEST_NAME or len(draft.rule_name) > 4 * LONGEST_NAME:
        raise FieldRefused(
            "ruleName", _("A rule's name has at most {longest_name} characters.").format(longest_name=LONGEST_NAME)
        )
    if draft.expression is not None:
        draft = replace(draft, **_flat(next(requirements(parsed(draft.expression)))))
    chainless = rule_type(draft.verification_type).chainless
    if not chainless and not draft.blockchain.strip():
        raise FieldRefused("blockchain", _("Blockchain is required"))
    if not chainless and draft.blockchain not in CHAINS:
        raise FieldRefused(
            "blockchain",
            _("{blockchain} is not one of the chains: {chains}.").format(
                blockchain=draft.blockchain[:40], chains=", ".join(form_order())
            ),
        )
    if not draft.role_id.strip():
        raise FieldRefused("roleId", _("Role is required"))
    if draft.verification_type not in TYPES:
        raise FieldRefused(
            "verificationType", _("The rule type must be one of {types}.").format(types=", ".join(TYPES))
        )
    _check_amounts(draft.min_tokens, draft.max_tokens)
    _check_contract(rule_type(draft.verification_type), draft.contract_address)
    leaf = _leaf_of(draft)
    _check_leaf(leaf)
    if draft.removal_mode not in REMOVAL_MODES:
        raise FieldRefused("removal", _("Removal is either at once (now) or after a grace time (grace)."))
    _whole_number(
        "removal", draft.removal_hours, 0, LONGEST_GRACE_HOURS,
        _("The grace time is a whole number of hours, from 1 to {hours}.").format(hours=LONGEST_GRACE_HOURS),
    )  # fmt: skip
    if draft.role_color and not _COLOR.fullmatch(draft.role_color):
        raise FieldRefused("roleColor", _("The role's colour is # and six hexadecimal digits, such as #5865F2."))
    if draft.state not in {"", *STATES_OF_NEW}:
        # Ignored, it would make a rule active that is meant to wait.
        raise FieldRefused("state", _("A rule's state is one of {states}.").format(states=", ".join(STATES_OF_NEW)))
    # A grace time of no hours takes roles at once, and is stored as that.
    mode = draft.removal_mode if draft.removal_hours else "now"
    return replace(draft, rule_name=name, removal_mode=mode, **_flat(leaf))


def without_lists(draft: RuleDraft, lists: GivenLists) -> RuleDraft:
    """Return the draft with its lists of addresses taken out."""
    flat = draft.verification_type == ADDRESS_LIST and draft.expression is None
    details = lists.take_out(draft.details) if flat else draft.details
    return replace(draft, details=details, expression=lists.take_out(draft.expression))


def with_lists(draft: RuleDraft, lists: GivenLists) -> RuleDraft:
    """Return the draft with the digests of its lists, which have been read."""
    return replace(draft, details=lists.put_in(draft.details), expression=lists.put_in(draft.expression))


def _leaf_of(draft: RuleDraft) -> Requirement:
    """Return the flat fields as one condition, without fields that its type does not use."""
    kind = rule_type(draft.verification_type)
    first = ((draft.trait_type or "").strip(), (draft.trait_value or "").strip())
    try:
        details = kind.details.parse(draft.details) if kind.details is not None else None
    except ExpressionRefused as fault:
        raise FieldRefused(fault.field, str(fault)) from None
    if kind.chainless:
        return Requirement(draft.verification_type, "", "", details=details)
    return Requirement(
        type=draft.verification_type,
        chain=draft.blockchain,
        contract=ANY_CONTRACT if kind.source == "anything" else draft.contract_address.strip(),
        min_tokens=draft.min_tokens,
        traits=(first, *draft.more_traits) if kind.names_trait else (),
        token_ids=tuple(draft.token_ids) if kind.names_ids else (),
        max_tokens=draft.max_tokens if kind.limited else None,
        details=details,
    )


def _flat(leaf: Requirement) -> dict[str, Any]:
    """Return one condition as a draft's flat fields."""
    trait_type, trait_value = leaf.traits[0] if leaf.traits else (None, None)
    return {
        "verification_type": leaf.type, "blockchain": leaf.chain, "contract_address": leaf.contract,
        "min_tokens": leaf.min_tokens, "trait_type": trait_type, "trait_value": trait_value,
        "token_ids": leaf.token_ids, "max_tokens": leaf.max_tokens, "more_traits": leaf.traits[1:],
        "details": leaf.details.document() if leaf.details is not None else {},
    }  # fmt: skip


def _check_contract(kind: RuleType, contract: str) -> None:
    if kind.source != "anything" and not kind.chainless and not contract.strip():
        raise FieldRefused("contractAddress", _("Contract address is required"))


def _check_leaf(leaf: Requirement) -> None:
    _check_contract(leaf.kind, leaf.contract)
    if leaf.kind.names_trait and not (leaf.traits and all(text.strip() for trait in leaf.traits for text in trait)):
        raise FieldRefused("traitType", _("Trait type and value are required for trait verification"))
    if leaf.kind.names_ids and not any(token.strip(" ,") for token in leaf.token_ids):
        raise FieldRefused("tokenIds", _("At least one token ID is required for token ID verification"))


def _check_amounts(least: object, most: object) -> None:
    for name, value in (("minTokens", least), ("maxTokens", most)):
        if isinstance(value, int) and value > MOST_TOKENS:
            raise FieldRefused(name, _("The number of tokens is at most {most}.").format(most=MOST_TOKENS))
    _whole_number(
        "minTokens", least, 1 if most is None else 0, MOST_TOKENS,
        _("Minimum tokens must be at least 1") if most is None else _("The minimum is a whole number of at least 0."),
    )  # fmt: skip
    if most is not None:
        _whole_number(
            "maxTokens", most, cast(int, least), MOST_TOKENS,
            _("The maximum is a whole number that is not below the minimum of {least}.").format(least=least),
        )  # fmt: skip


def _whole_number(name: str, value: object, least: int, most: int, message: str) -> None:
    if name == "minTokens" and isinstance(value, float | str):
        raise FieldRefused(name, _(WHOLE_TOKENS))
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise FieldRefused(name, message)


def parsed(expression: Any) -> Expression:
    """Return the tree of an expression's document. Raises FieldRefused for what this version cannot read."""
    try:
        return parse(expression)
    except ExpressionRefused as fault:
        raise FieldRefused("expression", str(fault)) from None


def expression_of(draft: RuleDraft) -> Expression:
    """Return the tree of a checked draft: its expression, or its flat fields as one requirement.

    Every condition is normalised. Raises FieldRefused for an invalid type, chain, address, trait or token id.
    """
    return _normal(_leaf_of(draft) if draft.expression is None else parsed(draft.expression))


def _normal(tree: Expression) -> Expression:
    if isinstance(tree, Requirement):
        return _normal_leaf(tree)
    if isinstance(tree, Not):
        return Not(_normal(tree.branch))
    return AtLeast(tree.n, tuple(_normal(branch) for branch in tree.of))


def _normal_leaf(leaf: Requirement) -> Requirement:
    if leaf.type not in TYPES:
        raise FieldRefused(
            "verificationType", _("Rules of the type {type} are not available here.").format(type=leaf.type[:40])
        )
    if not leaf.kind.chainless and (reason := chain_refusal(leaf.chain)):
        raise FieldRefused("blockchain", reason)
    _check_amounts(leaf.min_tokens, leaf.max_tokens)
    _check_leaf(leaf)
    leaf = _without_empty(leaf)
    if (unused := _unused(leaf)) is not None:
        # Left out, it would be a requirement that is never checked.
        raise FieldRefused(unused, _("This condition has no field {field}.").format(field=unused))
    if leaf.kind.source == "anything" and leaf.max_tokens:
        # One token is enough to answer this type, so the others are not counted.
        raise FieldRefused(
            "maxTokens", _("The maximum of any NFT can only be 0. Choose a collection to count its tokens.")
        )
    found = _checked_leaf(replace(leaf, min_tokens=1, max_tokens=None), language())
    if isinstance(found, tuple):
        raise FieldRefused(*found)
    # A type that does not count is met by one token, so the rule says so.
    least = leaf.min_tokens if leaf.kind.counts else min(leaf.min_tokens, 1)
    return replace(found, min_tokens=least, max_tokens=leaf.max_tokens)


def _without_empty(leaf: Requirement) -> Requirement:
    """Return the condition without empty traits and token ids that its type does not use: programs send all fields."""
    traits, ids = leaf.traits, leaf.token_ids
    if not leaf.kind.names_trait:
        traits = tuple(one for one in traits if any(text.strip() for text in one))
    if not leaf.kind.names_ids:
        ids = tuple(one for one in ids if one.strip(" ,"))
    return replace(leaf, traits=traits, token_ids=ids)


def _unused(leaf: Requirement) -> str | None:
    """Return a field of the condition that its type does not use, or None."""
    if leaf.kind.source == "anything" and leaf.contract.strip() not in {"", ANY_CONTRACT}:
        return "contract"
    if leaf.traits and not leaf.kind.names_trait:
        return "trait" if len(leaf.traits) == 1 else "traits"
    if leaf.token_ids and not leaf.kind.names_ids:
        return "tokenIds"
    return "maxTokens" if leaf.max_tokens is not None and not leaf.kind.limited else None


@lru_cache(maxsize=256)
def _checked_leaf(leaf: Requirement, spoken: str) -> Requirement | tuple[str, str]:
    """Return the normalised condition, or the field and the reason why it is invalid, in the language `spoken`.

    Cached, because the form checks every condition at each event, although at most one has changed.
    """
    try:
        return replace(
            leaf,
            contract=(contract := _contract(leaf)),
            traits=_traits(leaf.traits),
            token_ids=token_ids.normal(leaf.token_ids, leaf.chain),
            details=leaf.details.checked(leaf.chain, contract) if leaf.details is not None else None,
        )
    except FieldRefused as refused:
        return refused.field, refused.message


def _traits(given: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    traits = tuple(_trait(one) for one in given)
    if len(traits) > MOST_TRAITS:
        raise FieldRefused(
            "traits", _("A condition names at most {most_traits} traits of one token.").format(most_traits=MOST_TRAITS)
        )
    if twice := next((one for at, one in enumerate(traits) if one in traits[:at]), None):
        raise FieldRefused(
            "traits",
            _("{type}: {value} is there twice. Remove one of them.").format(type=twice[0][:60], value=twice[1][:60]),
        )
    return traits


def _trait(given: tuple[str, str]) -> tuple[str, str]:
    trait = given[0].strip(), given[1].strip()
    if max(map(len, trait)) > LONGEST_TRAIT:
        raise FieldRefused(
            "traitType",
            _("A trait's type and value have at most {longest_trait} characters each.").format(
                longest_trait=LONGEST_TRAIT
            ),
        )
    if any(unicodedata.category(letter) in _CONTROLS for text in trait for letter in text):
        raise FieldRefused("traitType", _("A trait's type and value have no line breaks or control characters."))
    trait = plain(trait[0], LONGEST_TRAIT), plain(trait[1], LONGEST_TRAIT)
    if not all(trait):
        raise FieldRefused("traitType", _("Trait type and value are required for trait verification"))
    bound = _BOUND.match(trait[1])
    if bound and not (bound[1] in COMPARED and _NUMBER.fullmatch(trait[1][bound.end() :])):
        raise FieldRefused("traitValue", _("A trait can be at least or at most a number, like >=10 or <=5."))
    if (between := range_in(trait[1])) is not None:
        _check_range(trait[1], *between)
    return trait


def _check_range(wanted: str, first: str, last: str) -> None:
    """Raise FieldRefused for a range that runs backwards, or whose third dot may belong to its second number."""
    if "..." in wanted:
        said = _("{value} is not clear: write a range of numbers with two dots, like 5..10 or 0..0.5.")
        raise FieldRefused("traitValue", said.format(value=wanted[:60]))
    smaller, larger = number_in(first), number_in(last)
    if smaller is not None and larger is not None and smaller > larger:
        raise FieldRefused(
            "traitValue", _("Write the smaller number first: {smaller}..{larger}.").format(smaller=last, larger=first)
        )


def _contract(leaf: Requirement) -> str:
    if leaf.kind.source == "anything":
        return ANY_CONTRACT
    if leaf.kind.chainless:
        return ""
    given = leaf.contract.strip()
    if leaf.kind.source == "coins" and given.lower() == NATIVE:
        return NATIVE
    if leaf.chain == SOLANA:
        # A view call on Solana is refused later, whatever its contract.
        if is_solana(given) or leaf.kind.source == "calls":
            return given
        if leaf.kind.source == "coins":
            raise FieldRefused("contractAddress", _("On Solana a coin is named by its mint: 32 to 44 characters."))
        raise FieldRefused("contractAddress", _("On Solana a collection is named by its address: 32 to 44 characters."))
    try:
        return parse_evm(given)
    except AddressRefused as fault:
        raise FieldRefused("contractAddress", str(fault)) from None


def chain_refusal(chain: str) -> str | None:
    """Return why no rule can use this chain here, as a sentence, or None."""
    if not chain.strip():
        return _("Blockchain is required")
    if chain not in CHAINS:
        return _("Rules on {chain} are not available here.").format(chain=chain_title(chain[:40]))
    if not settings().rpc.get(chain):
        return _("No node is configured for {chain}, so rules on it are off.").format(chain=chain_title(chain))
    return None
