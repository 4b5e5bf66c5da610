"""What an admin may learn of members who do not share their wallets: of tokens and traits, the collection alone.

A token id or a rare trait names its owner's wallet on the chain. Counts, rounded or not, do not hide it: accounts of
the admin's own fill them up to any floor, and two proposals that differ by one token differ by its owner. So for these
members a condition on tokens or traits answers no where they have nothing of the collection at all, and else unknown.
A condition on the whole collection says as much, however many proposals an admin compares.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from services.expressions import Answer, AtLeast, Expression, Not, Requirement, requirements
from services.policy import GrantFacts, RuleTerms
from services.verdicts import verdict

_SINGLING = frozenset({"token_id", "trait"})


def is_singling(leaf: Requirement) -> bool:
    """Return whether a condition is on single tokens or traits, which only a few wallets may meet."""
    return leaf.type in _SINGLING


def singles_out(*expressions: Expression) -> bool:
    """Return whether one of the conditions is on single tokens or traits."""
    return any(is_singling(leaf) for expression in expressions for leaf in requirements(expression))


def by_collection(terms: RuleTerms) -> RuleTerms:
    """Return the rule with each condition on tokens or traits asking for anything of its collection instead."""
    return replace(terms, expression=_coarse(terms.expression))


def answer(rule: RuleTerms, wallets: Sequence[tuple[str, str]], known: Mapping[Requirement, Answer]) -> Answer:
    """Return what a rule says of a member, as far as an admin may learn it.

    `known` is what was read for the conditions of `by_collection`; what is missing is unknown.
    """
    return verdict(rule.expression, wallets, lambda leaf: _masked(leaf, known))


def shows(grant: GrantFacts | None, *, has_role: bool) -> bool:
    """Return whether everybody sees on Discord what the rules say of a member's role.

    Not so where somebody else gave or took it, or an admin lets the member keep it.
    """
    if grant is None:
        return not has_role
    return has_role and grant.state == "held" and not (grant.gift or grant.held_back or grant.protected)


def _masked(leaf: Requirement, known: Mapping[Requirement, Answer]) -> Answer:
    if not is_singling(leaf):
        return known.get(leaf, Answer.UNKNOWN)
    return Answer.NO if known.get(_anything_of(leaf)) is Answer.NO else Answer.UNKNOWN


def _coarse(expression: Expression) -> Expression:
    if isinstance(expression, Requirement):
        return _anything_of(expression) if is_singling(expression) else expression
    if isinstance(expression, Not):
        return Not(_coarse(expression.branch))
    return AtLeast(expression.n, tuple(map(_coarse, expression.of)))


def _anything_of(leaf: Requirement) -> Requirement:
    return Requirement("basic", leaf.chain, leaf.contract)
