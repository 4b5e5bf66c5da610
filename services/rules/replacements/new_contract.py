"""The expression of a rule after a collection or a coin moved to another contract.

While both contracts count, a member's tokens on them add up, so nobody loses a role halfway through a migration.
Amounts of coins and numbers that a function returns do not add up: a member needs all of it on one of the contracts.
A condition says no to a member without a wallet on its chain, even if it asks for a maximum. So across chains "at most"
becomes "not more than": who has no wallet on one of the two chains has nothing there.

A condition without an exact counterpart is not carried over: nothing is guessed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from locales import _
from services.rules.expression import AtLeast, Expression, Not, Requirement, parse, requirements, to_document
from services.rules.types.coin import CoinAmount
from services.rules.types.declaration import ExpressionRefused
from services.rules.types.view_call import AT_LEAST, AT_MOST, ViewCall

Contract = tuple[str, str]
"""A chain and a contract's address."""


class NotCarried(Exception):
    """A condition cannot be carried over to the new contract; the text says why, as a sentence."""


def naming(tree: Expression, contract: Contract) -> list[Requirement]:
    """Return the conditions of a tree on a contract, each once."""
    return list(dict.fromkeys(leaf for leaf in requirements(tree) if (leaf.chain, leaf.contract) == contract))


def passes_on(tree: Expression, contract: Contract) -> bool:
    """Return whether a function of another contract gets this contract's address as an argument."""
    chain, address = contract
    return any(
        leaf.chain == chain and leaf.contract != address and address.lower() in argument.lower()
        for leaf in requirements(tree)
        if isinstance(leaf.details, ViewCall)
        for argument in leaf.details.args
    )


def carried(tree: Expression, successors: Mapping[Requirement, Requirement], *, both: bool) -> Expression:
    """Return the tree with each condition replaced by its successor, or by one on both contracts. Raises NotCarried."""
    found = _carried(tree, successors, both=both)
    try:
        return parse(to_document(found))
    except ExpressionRefused as fault:
        too_large = _("With both contracts it would be too large: {reason}")
        raise NotCarried(too_large.format(reason=str(fault))) from None


def notes(leaves: Mapping[Requirement, Requirement]) -> tuple[str, ...]:
    """Return what an admin should know about conditions that count on both contracts."""
    found = dict[str, None]()
    for leaf in leaves:
        if _adds_up(leaf):
            if leaf.least > 1 or leaf.most:
                found[_("Tokens of both contracts add up.")] = None
        else:
            found[_("Amounts on the two contracts do not add up: members need all of it on one of them.")] = None
    return tuple(found)


def _carried(tree: Expression, successors: Mapping[Requirement, Requirement], *, both: bool) -> Expression:
    if isinstance(tree, Requirement):
        new = successors.get(tree)
        if new is None:
            return tree
        return _on_both(new, tree) if both else new
    if isinstance(tree, Not):
        return Not(_carried(tree.branch, successors, both=both))
    return _flat(AtLeast(tree.n, tuple(_carried(branch, successors, both=both) for branch in tree.of)))


def _flat(tree: AtLeast) -> AtLeast:
    """Return a group with its groups of the same kind merged into it: any in any, all in all."""
    is_all = tree.n == len(tree.of)
    if not is_all and tree.n != 1:
        return tree
    branches = list[Expression]()
    for branch in tree.of:
        same = isinstance(branch, AtLeast) and branch.n == (len(branch.of) if is_all else 1)
        branches.extend(branch.of if isinstance(branch, AtLeast) and same else (branch,))
    return AtLeast(len(branches) if is_all else 1, tuple(branches))


def _adds_up(leaf: Requirement) -> bool:
    """Return whether the condition on both contracts is exactly a condition on the sum of both."""
    if isinstance(leaf.details, CoinAmount):
        return leaf.details.most == "0"
    if isinstance(leaf.details, ViewCall):
        call = leaf.details
        return call.compare not in {AT_LEAST, AT_MOST} or (call.value in {"0", "1"} and not call.may_fall)
    return True


def _on_both(new: Requirement, old: Requirement) -> Expression:
    """Return the condition on a member's holdings of both contracts together. Raises NotCarried."""
    either = AtLeast(1, (new, old))
    neither_more = AtLeast(2, (new, old))
    if isinstance(old.details, CoinAmount):
        if old.details.most is None:
            return either
        if old.details.most == "0" and not _is_across(new, old):
            return neither_more
        raise NotCarried(_("A maximum of a coin cannot be counted over two contracts."))
    if isinstance(old.details, ViewCall):
        if old.details.compare != AT_MOST:
            return either
        if old.details.value == "0" and not old.details.may_fall and not _is_across(new, old):
            return neither_more
        raise NotCarried(_("A maximum of a function's answer cannot be counted over two contracts."))
    bounds = list[Expression]()
    if old.least > 0:
        bounds.append(AtLeast(1, tuple(_sums_of_at_least(new, old, old.least))))
    if old.most is not None:
        bounds.extend(_sums_of_at_most(new, old, old.most))
    return bounds[0] if len(bounds) == 1 else AtLeast(len(bounds), tuple(bounds))


def _sums_of_at_least(new: Requirement, old: Requirement, least: int) -> Iterator[Expression]:
    """Yield conditions of which one holds exactly if the tokens of both contracts together are at least `least`."""
    if least > MOST_ADDED:
        raise _too_many()
    for of_new in range(least, -1, -1):
        parts = [_bounded(leaf, count, None) for leaf, count in ((new, of_new), (old, least - of_new)) if count]
        yield parts[0] if len(parts) == 1 else AtLeast(2, tuple(parts))


def _sums_of_at_most(new: Requirement, old: Requirement, most: int) -> Iterator[Expression]:
    """Yield conditions that all hold exactly if the tokens of both contracts together are at most `most`."""
    if most > MOST_ADDED:
        raise _too_many()
    across = _is_across(new, old)
    yield _at_most(new, most, across=across)
    for of_old in range(most):
        parts = _at_most(new, most - of_old - 1, across=across), _at_most(old, of_old, across=across)
        yield _flat(AtLeast(1, parts))
    yield _at_most(old, most, across=across)


MOST_ADDED = 20
"""The largest number that is counted over two contracts: each number up to it takes a condition on either contract."""


def _too_many() -> NotCarried:
    told = _("More than {most} tokens cannot be counted over two contracts. Let only the new one count.")
    return NotCarried(told.format(most=MOST_ADDED))


def _is_across(new: Requirement, old: Requirement) -> bool:
    """Return whether a member's wallets may count for one of the conditions alone."""
    return new.chain != old.chain


def _at_most(leaf: Requirement, most: int, *, across: bool) -> Expression:
    """Return the condition on at most so many tokens; `across` chains it holds without a wallet on the chain too."""
    if not across:
        return _bounded(leaf, 0, most)
    if leaf.kind.counts or not most:
        return Not(_bounded(leaf, most + 1, None))
    return AtLeast(1, (_bounded(leaf, 0, most), Not(_bounded(leaf, 1, None))))


def _bounded(leaf: Requirement, least: int, most: int | None) -> Requirement:
    return replace(leaf, min_tokens=least, max_tokens=most)
