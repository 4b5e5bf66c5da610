"""A rule as the form shows it: conditions and nested groups, each with a negated counterpart."""

from dataclasses import dataclass, replace

from services.rules.expression import AtLeast, Expression, Not, Requirement

ALL, ANY, SOME, NONE = "all", "any", "some", "none"
MODES = (ALL, ANY, SOME, NONE)
"""How many of a group's parts must hold: all, one, at least `least`, none."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One requirement; `negated` if it must not hold."""

    leaf: Requirement
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Parts and how many of them must hold; `least` applies only in the mode `some`."""

    mode: str
    parts: tuple["Condition | Group", ...]
    least: int = 1


def to_tree(group: Group) -> Expression:
    """Return the expression of a group, at most two levels deeper than the group's own nesting.

    Negations are pushed down to the parts, so that a group in a group stays within the four levels.
    """
    branches = tuple(_part(part) for part in group.parts)
    if len(branches) == 1:
        return _opposite(branches[0]) if group.mode == NONE else branches[0]
    match group.mode:
        case "any":
            return AtLeast(1, branches)
        case "some":
            return AtLeast(min(max(1, group.least), len(branches)), branches)
        case "none":
            return AtLeast(len(branches), tuple(_opposite(branch) for branch in branches))
        case _:
            return AtLeast(len(branches), branches)


def _part(part: Condition | Group) -> Expression:
    if isinstance(part, Group):
        return to_tree(part)
    return Not(part.leaf) if part.negated else part.leaf


def _opposite(tree: Expression) -> Expression:
    """Return the negation of a tree, pushed down to the conditions."""
    if isinstance(tree, Requirement):
        return Not(tree)
    if isinstance(tree, Not):
        return tree.branch
    return AtLeast(len(tree.of) - tree.n + 1, tuple(_opposite(branch) for branch in tree.of))


def from_tree(tree: Expression) -> Group | None:
    """Return the group that the form shows for a tree; None if groups are nested three deep."""
    found = _group(_pushed(tree), levels=2)
    return Group(ALL, (found,)) if isinstance(found, Condition) else found


def _pushed(tree: Expression) -> Expression:
    if isinstance(tree, Not):
        inner = _pushed(tree.branch)
        return tree if isinstance(inner, Requirement) else _opposite(inner)
    if isinstance(tree, AtLeast):
        return replace(tree, of=tuple(_pushed(branch) for branch in tree.of))
    return tree


def _group(tree: Expression, levels: int) -> Condition | Group | None:
    if isinstance(tree, Requirement):
        return Condition(tree)
    if isinstance(tree, Not):
        return Condition(tree.branch, negated=True) if isinstance(tree.branch, Requirement) else None
    if len(tree.of) == 1:
        return _group(tree.of[0], levels)
    if levels == 0:
        return None
    parts: list[Condition | Group] = []
    for branch in tree.of:
        part = _group(branch, levels - 1)
        if part is None:
            return None
        parts.append(part)
    return _named(tree.n, tuple(parts))


def _named(n: int, parts: tuple[Condition | Group, ...]) -> Group:
    if n == len(parts):
        if all(isinstance(part, Condition) and part.negated for part in parts):
            return Group(NONE, tuple(replace(part, negated=False) for part in parts if isinstance(part, Condition)))
        return Group(ALL, parts)
    return Group(ANY, parts) if n == 1 else Group(SOME, parts, n)
