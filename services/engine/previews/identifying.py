"""Which conditions few wallets meet, so that the names in a preview or a list would reveal whose wallet is whose.

A condition on single tokens shows which tokens a member holds. A token names its owner's wallet, which the member may
not have shared.
"""

from services.rules.expression import Expression, requirements, with_sense

FEWEST_NAMED = 5
"""How many people must meet a condition on single tokens, traits or a function before a preview names them."""
_OF_FEW = frozenset({"tokens", "calls", "lists", "nothing"})
"""The sources of conditions that may concern few wallets."""


def is_identifying(*expressions: Expression) -> bool:
    """Return whether few wallets may meet a condition: one on single tokens, traits, addresses or a function.

    Of a condition that only a newer version knows, few may meet too.
    """
    return any(leaf.kind.source in _OF_FEW for expression in expressions for leaf in requirements(expression))


def is_identifying_by_absence(*expressions: Expression) -> bool:
    """Return whether so few may fail to meet a condition: one on what must not be held, or only up to a maximum."""
    leaves = (leaf for expression in expressions for leaf in with_sense(expression))
    return any(leaf.kind.source in _OF_FEW and (not wanted or leaf.most is not None) for leaf, wanted in leaves)


def are_few(meeting: int, others: int, *, by_absence: bool) -> bool:
    """Return whether names would reveal wallets: so few people meet identifying conditions or, by absence, do not."""
    return meeting < FEWEST_NAMED or (by_absence and 0 < others < FEWEST_NAMED)
