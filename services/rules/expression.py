"""The expression of a rule: a tree of requirements, evaluated in Kleene's three-valued logic."""

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, cast

from locales import N_, _, listed, number
from services.core.answer import Answer
from services.rules.types import token_ids
from services.rules.types.address_list import AddressList
from services.rules.types.declaration import Details, ExpressionRefused, RuleType
from services.rules.types.registry import rule_type

ANY_NFT = "any_nft"
ANY_CONTRACT = "any"
"""The contract of a requirement that names none."""
UNREADABLE = "unreadable"
"""The type of a requirement in place of a document that cannot be read; no rule type has this name."""
Amount = int | str
"""A number of tokens; or any other amount, such as one in whole coins, as a decimal text that loses no digit."""
LARGEST_NUMBER = 2**53 - 1
"""The largest number that every reader of JSON reads exactly (RFC 8259, section 6); anybody can mint more tokens."""
MAX_DEPTH = 4
MAX_LEAVES = 40
_GROUPS = frozenset({"all", "any", "not", "atLeast"})
_LEAF_FIELDS = frozenset({"type", "chain", "contract", "minTokens", "maxTokens", "trait", "traits", "tokenIds"})
MOST_TRAITS = 10
"""Maximum number of traits that one token may be required to have."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A leaf: what a member has to hold, and how much of it."""

    type: str
    chain: str
    contract: str
    min_tokens: int = 1
    traits: tuple[tuple[str, str], ...] = ()
    """Pairs of a type and a value; one token must have all of them."""
    token_ids: tuple[str, ...] = ()
    max_tokens: int | None = None
    """The maximum number of tokens; None for no maximum."""
    details: Details | None = None
    """The fields that only its type has."""
    kind: RuleType = field(init=False, repr=False, compare=False)
    """The declaration of its type, looked up once because a sweep needs it for every member."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", rule_type(self.type))

    @property
    def least(self) -> int:
        """The least amount that satisfies it; at most one token if its type does not count them."""
        if self.details is not None:
            return self.details.bounds()[0]
        return self.min_tokens if self.kind.counts else min(self.min_tokens, 1)

    @property
    def most(self) -> int | None:
        """The largest amount that it allows; None for no limit."""
        return self.details.bounds()[1] if self.details is not None else self.max_tokens

    def shown(self, amount: int) -> str:
        """Return an amount as documents write it, the same in every language."""
        return self.details.shown(amount) if self.details is not None else str(amount)

    def spoken(self, amount: int) -> str:
        """Return an amount in the reader's language."""
        return self.details.spoken(amount) if self.details is not None else number(amount)

    def in_json(self, amount: int) -> Amount:
        """Return an amount for a JSON document: a number for tokens, a text for any other or a very large amount."""
        return amount if self.details is None and amount <= LARGEST_NUMBER else self.shown(amount)

    def rounded(self, amount: int) -> int:
        """Return an amount in at most three significant digits, on the same side of both bounds as before.

        An exact large amount can name its wallet: few wallets hold exactly 1,234,567 of a coin, and a contract may
        return the address itself as the balance.
        """
        step = 10 ** max(0, len(str(abs(amount))) - 3)
        below = amount // step * step
        fitting = (one for one in (below, below + step, self.least) if self._side(one) == self._side(amount))
        return amount if below == amount else next(fitting, amount)

    def _side(self, amount: int) -> int:
        """Return -1 below the bounds, 0 within them, 1 above them."""
        if amount < self.least:
            return -1
        return int(self.most is not None and amount > self.most)


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A node that holds if at least `n` of its branches do; `all` and `any` are special cases of it."""

    n: int
    of: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Not:
    """A node that holds if its branch does not."""

    branch: "Expression"


Expression = Requirement | AtLeast | Not


def evaluate(expression: Expression, answer: Callable[[Requirement], Answer]) -> Answer:
    """Return Kleene's answer for the tree: enough yes is yes, too many no is no, otherwise unknown."""
    if isinstance(expression, Requirement):
        return answer(expression)
    if isinstance(expression, Not):
        inner = evaluate(expression.branch, answer)
        return {Answer.YES: Answer.NO, Answer.NO: Answer.YES}.get(inner, Answer.UNKNOWN)
    answers = [evaluate(branch, answer) for branch in expression.of]
    if answers.count(Answer.YES) >= expression.n:
        return Answer.YES
    if len(answers) - answers.count(Answer.NO) < expression.n:
        return Answer.NO
    return Answer.UNKNOWN


def requirements(expression: Expression) -> Iterator[Requirement]:
    """Yield every leaf, left to right."""
    if isinstance(expression, Requirement):
        yield expression
    elif isinstance(expression, Not):
        yield from requirements(expression.branch)
    else:
        for branch in expression.of:
            yield from requirements(branch)


def lists_in(expression: Expression) -> list[AddressList]:
    """Return the lists of addresses that the tree names, left to right."""
    return [leaf.details for leaf in requirements(expression) if isinstance(leaf.details, AddressList)]


def with_sense(expression: Expression) -> tuple[tuple[Requirement, bool], ...]:
    """Return every leaf, left to right, with True if it helps to satisfy the tree, and False if it must not hold."""
    return tuple(_with_sense(expression, wanted=True))


def _with_sense(expression: Expression, *, wanted: bool) -> Iterator[tuple[Requirement, bool]]:
    if isinstance(expression, Requirement):
        yield expression, wanted
    elif isinstance(expression, Not):
        yield from _with_sense(expression.branch, wanted=not wanted)
    else:
        for branch in expression.of:
            yield from _with_sense(branch, wanted=wanted)


def parse(document: object) -> Expression:
    """Parse the JSON document of an expression (`{type, chain, …}`, `all`, `any`, `not`, `atLeast`).

    Raises ExpressionRefused for another shape, more than 4 levels or more than 40 leaves.
    """
    tree = _parse(document, depth=1)
    if sum(1 for _leaf in requirements(tree)) > MAX_LEAVES:
        raise ExpressionRefused(_("A rule can have at most {most} conditions.").format(most=MAX_LEAVES))
    return tree


def parse_stored(document: object) -> Expression:
    """Parse the document of a stored rule; what this version cannot read becomes a condition that nothing answers.

    A newer version that runs beside this one, or ran before it, may have written it. Such a rule changes no role, and
    it must not keep the other rules from being read. Never store the result.
    """
    try:
        tree = parse(document)
        for leaf in requirements(tree):
            if leaf.details is not None:
                leaf.details.check_stored(leaf.contract)
            if leaf.kind.names_ids:
                token_ids.check_stored(leaf.token_ids, leaf.chain)
    except (ExpressionRefused, ValueError):
        return Requirement(UNREADABLE, "", "")
    return tree


def _parse(document: object, depth: int) -> Expression:
    if depth > MAX_DEPTH:
        raise ExpressionRefused(_("Conditions can be nested at most {most} levels deep.").format(most=MAX_DEPTH))
    if not isinstance(document, dict):
        raise ExpressionRefused(_("A condition must be an object."))
    node = cast(dict[str, Any], document)
    if (groups := node.keys() & _GROUPS) and len(node) > 1:
        # An object with two meanings: following only one would give roles by half of what the admin wrote.
        raise ExpressionRefused(_("{fields} must stand alone in its object.").format(fields=listed(sorted(groups))))
    if "all" in node:
        branches = _branches(node["all"], depth)
        return AtLeast(len(branches), branches)
    if "any" in node:
        return AtLeast(1, _branches(node["any"], depth))
    if "not" in node:
        return Not(_parse(node["not"], depth + 1))
    if "atLeast" in node:
        return _at_least(node["atLeast"], depth)
    return _leaf(node)


def _branches(value: object, depth: int) -> tuple[Expression, ...]:
    if not isinstance(value, list) or not value:
        raise ExpressionRefused(_("A group of conditions must be a list with at least one condition."))
    return tuple(_parse(item, depth + 1) for item in cast(list[object], value))


def _at_least(value: object, depth: int) -> AtLeast:
    if not isinstance(value, dict):
        raise ExpressionRefused(_("atLeast must be an object with n and of."))
    node = cast(dict[str, Any], value)
    _only(node, {"n", "of"}, N_("atLeast has no field {field}."))
    branches = _branches(node.get("of"), depth)
    n = node.get("n")
    if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= len(branches):
        raise ExpressionRefused(_("atLeast needs n between 1 and the number of its conditions."))
    return AtLeast(n, branches)


def _only(node: Mapping[str, Any], known: AbstractSet[str], refusal: str) -> None:
    """Refuse unknown fields: a misspelt one would be a requirement that is never checked."""
    if strange := sorted(node.keys() - known):
        raise ExpressionRefused(_(refusal).format(field=strange[0][:40]))


def _leaf(node: Mapping[str, Any]) -> Requirement:
    if (kind := rule_type(node.get("type"))).source == "anything" and not node.get("contract"):
        node = {**node, "contract": ANY_CONTRACT}
    if kind.chainless:
        return _chainless(node, kind)
    if kind.source == "nothing" and isinstance(node.get("type"), str):
        # A newer version may know the type, with fields that this version does not know.
        chain, contract = (str(node.get(name) or "") for name in ("chain", "contract"))
        return Requirement(node["type"], chain, contract)
    needed = ("type", "chain", "contract")
    if not all(isinstance(node.get(name), str) and node[name] for name in needed):
        raise ExpressionRefused(_("A condition needs type, chain and contract."))
    _only(node, _LEAF_FIELDS | kind.names, N_("A condition has no field {field}."))
    most = node.get("maxTokens")
    floor = 1 if most is None else 0
    least = node.get("minTokens", 1)
    if not isinstance(least, int) or isinstance(least, bool) or least < floor:
        raise ExpressionRefused(_("minTokens must be a whole number of at least {floor}.").format(floor=floor))
    if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < least):
        raise ExpressionRefused(_("maxTokens must be a whole number that is not below minTokens."))
    return Requirement(
        type=node["type"],
        chain=node["chain"],
        contract=node["contract"],
        min_tokens=least,
        traits=_traits(node),
        token_ids=_token_ids(node.get("tokenIds")),
        max_tokens=most,
        details=kind.details.parse(node) if kind.details is not None else None,
    )


def _chainless(node: Mapping[str, Any], kind: RuleType) -> Requirement:
    """Return a requirement that our own tables answer; its chain and its contract are empty texts."""
    _only(node, {"type", *(one.name for one in kind.fields)}, N_("This condition has no field {field}."))
    return Requirement(node["type"], "", "", details=kind.details.parse(node) if kind.details is not None else None)


def _traits(node: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    one, several = node.get("trait"), node.get("traits")
    if one is not None and several is not None:
        raise ExpressionRefused(_("A condition has either trait or traits."))
    if several is None:
        return () if one is None else (_trait(one),)
    if not isinstance(several, list) or not 1 <= len(cast(list[object], several)) <= MOST_TRAITS:
        raise ExpressionRefused(_("traits must be a list of 1 to {most} traits.").format(most=MOST_TRAITS))
    return tuple(_trait(item) for item in cast(list[object], several))


def _trait(value: object) -> tuple[str, str]:
    trait = cast(dict[str, Any], value) if isinstance(value, dict) else {}
    kind, wanted = trait.get("type"), trait.get("value")
    if not isinstance(kind, str) or not isinstance(wanted, str):
        raise ExpressionRefused(_("A trait needs a type and a value."))
    _only(trait, {"type", "value"}, N_("A trait has no field {field}."))
    return kind, wanted


def _token_ids(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in cast(list[object], value)):
        raise ExpressionRefused(_("tokenIds must be a list of texts."))
    return tuple(cast(list[str], value))


def to_document(expression: Expression) -> dict[str, Any]:
    """Return the JSON document that `parse` reads back as the same tree."""
    if isinstance(expression, Not):
        return {"not": to_document(expression.branch)}
    if isinstance(expression, AtLeast):
        branches = [to_document(branch) for branch in expression.of]
        if expression.n == len(branches):
            return {"all": branches}
        return {"any": branches} if expression.n == 1 else {"atLeast": {"n": expression.n, "of": branches}}
    leaf: dict[str, Any] = {"type": expression.type}
    if not expression.kind.chainless:
        leaf |= {"chain": expression.chain, "contract": expression.contract, "minTokens": expression.min_tokens}
    if expression.max_tokens is not None:
        leaf["maxTokens"] = expression.max_tokens
    traits = [{"type": kind, "value": wanted} for kind, wanted in expression.traits]
    if len(traits) > 1:
        leaf["traits"] = traits
    elif traits:
        leaf["trait"] = traits[0]
    if expression.token_ids:
        leaf["tokenIds"] = list(expression.token_ids)
    if expression.details is not None:
        leaf.update(expression.details.document())
    return leaf
