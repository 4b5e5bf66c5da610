"""What a rule requires, in plain words."""

from collections.abc import Mapping

from services.addresses import shorten
from services.expressions import AtLeast, Expression, Not, Requirement
from services.rule_form import chain_title

Names = Mapping[tuple[str, str], str]
"""`(chain, contract)` → the collection's name, where it is known."""


def in_words(tree: Expression, names: Names) -> str:
    """What the whole tree requires; a collection without a name is told by its shortened address."""
    if isinstance(tree, Requirement):
        tokens = "token" if tree.min_tokens == 1 else "tokens"
        collection = names.get((tree.chain, tree.contract)) or shorten(tree.contract)
        return f"At least {tree.min_tokens} {tokens} of {collection} on {chain_title(tree.chain)}"
    if isinstance(tree, Not):
        return f"Not: {in_words(tree.branch, names)}"
    return _group(tree, names)


def _group(tree: AtLeast, names: Names) -> str:
    parts = "; ".join(in_words(branch, names) for branch in tree.of)
    if tree.n == len(tree.of):
        return f"All of: {parts}"
    return f"Any of: {parts}" if tree.n == 1 else f"At least {tree.n} of: {parts}"
