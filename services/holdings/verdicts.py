"""What a whole rule says of a member: the answer of its tree, for those who proved something it could ask about."""

from collections.abc import Callable, Iterable

from services.core.answer import Answer
from services.holdings.fetch_plan import family_of
from services.rules.expression import Expression, Requirement, evaluate, requirements


def verdict(tree: Expression, wallets: Iterable[tuple[str, str]], answer: Callable[[Requirement], Answer]) -> Answer:
    """Yes, no or unknown; always no without any wallet (`(family, address)`) of a kind that the rule asks about.

    Without this an absence ("must not hold") would be proved by proving nothing.
    """
    kinds = {family_of(leaf.chain) for leaf in requirements(tree)}
    if not any(family in kinds for family, _ in wallets):
        return Answer.NO
    return evaluate(tree, answer)
