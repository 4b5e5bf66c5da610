"""A rule in words: the names that the form proposes, and its requirements as one sentence or as indented lines."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from locales import N_, _, first_of, listed, ngettext, series
from services.collections.trait_match import number_in, range_in
from services.core.addresses import shorten
from services.core.chain_names import capitalised, chain_title
from services.rules.draft import LONGEST_NAME
from services.rules.expression import AtLeast, Expression, Not, Requirement
from services.rules.types.declaration import Details
from services.rules.types.registry import rule_type
from services.rules.types.token_ids import bounds

Names = Mapping[tuple[str, str], str]
"""`(chain, contract)` → the collection's name, if known."""

NAMED_TOKEN_IDS = 3
NAMED_CONDITIONS = 3
"""How many conditions an automatic name lists."""
NAMED_IDS = 6
"""How many token ids and ranges a sentence lists; it only counts the others."""
UNKNOWN = N_("A condition that only a newer version knows")
_LEAST, _MOST = N_("{trait} of at least {limit}"), N_("{trait} of at most {limit}")
_BOUNDS = {
    ">=": _LEAST, "≥": _LEAST, "<=": _MOST, "≤": _MOST,
    ">": N_("{trait} of more than {limit}"), "<": N_("{trait} of less than {limit}"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a rule: its indentation and its text."""

    depth: int
    text: str


def in_words(tree: Expression, names: Names) -> str:
    """Return the whole tree as a sentence; a collection without a name appears by its shortened address."""
    return _sentence(tree, names, holds=True)


def in_lines(tree: Expression, names: Names) -> tuple[Line, ...]:
    """Return the tree as lines, one for each condition and each group, in the order of the rule."""
    return tuple(_lines(tree, names, 0, holds=True))


def _sentence(tree: Expression, names: Names, *, holds: bool) -> str:
    if isinstance(tree, Requirement):
        return _condition(tree, names, holds=holds)
    if isinstance(tree, Not):
        return _sentence(tree.branch, names, holds=not holds)
    if len(tree.of) == 1:
        return _sentence(tree.of[0], names, holds=holds)
    parts = [_sentence(branch, names, holds=True) for branch in tree.of]
    inner = "; ".join(f"({part})" if _is_group(branch) else part for branch, part in zip(tree.of, parts, strict=True))
    return f"{_heading(tree, holds)}: {inner}"


def _lines(tree: Expression, names: Names, depth: int, *, holds: bool) -> Iterator[Line]:
    if isinstance(tree, Requirement):
        yield Line(depth, _sentence(tree, names, holds=holds))
    elif isinstance(tree, Not):
        yield from _lines(tree.branch, names, depth, holds=not holds)
    elif len(tree.of) == 1:
        yield from _lines(tree.of[0], names, depth, holds=holds)
    else:
        yield Line(depth, f"{_heading(tree, holds)}:")
        for branch in tree.of:
            yield from _lines(branch, names, depth + 1, holds=True)


def _is_group(tree: Expression) -> bool:
    if isinstance(tree, Not):
        return _is_group(tree.branch)
    return isinstance(tree, AtLeast) and (len(tree.of) > 1 or any(map(_is_group, tree.of)))


def _heading(tree: AtLeast, holds: bool) -> str:
    if tree.n == len(tree.of):
        return _("All of") if holds else _("Not all of")
    if tree.n == 1:
        return _("Any of") if holds else _("None of")
    return (_("At least {count} of") if holds else _("Fewer than {count} of")).format(count=tree.n)


def _condition(leaf: Requirement, names: Names, *, holds: bool) -> str:
    """Return a condition, or its opposite, in its own words."""
    if leaf.kind.source == "nothing":
        return _(UNKNOWN)
    if leaf.details is not None:
        return leaf.details.words(_place(leaf, names), holds=holds)
    if leaf.max_tokens is not None:
        return (_within if holds else _outside)(leaf, names, leaf.least, leaf.max_tokens)
    if leaf.kind.source == "anything":
        return (_("Any NFT on {chain}") if holds else _("No NFT on {chain}")).format(chain=chain_title(leaf.chain))
    count, place = leaf.min_tokens, _place_with_traits(leaf, names)
    if leaf.kind.names_ids and leaf.least > 1:
        fewer = _("Fewer than {count} of the tokens {ids} of {place}")
        said = _("At least {count} of the tokens {ids} of {place}") if holds else fewer
        return said.format(count=leaf.least, ids=_ids(leaf, "and"), place=place)
    if leaf.kind.names_ids and _is_single(leaf.token_ids):
        # Translators: {ids} is one token's id.
        without = _("Not token {ids} of {place}")
        # Translators: {ids} is one token's id.
        said = _("Token {ids} of {place}") if holds else without
        return said.format(ids=_ids(leaf), place=place)
    if leaf.kind.names_ids:
        said = _("Any of the tokens {ids} of {place}") if holds else _("None of the tokens {ids} of {place}")
        return said.format(ids=_ids(leaf), place=place)
    if holds:
        # Translators: {place} is a collection and its chain, such as "Cats on Base".
        said = ngettext("At least {count} token of {place}", "At least {count} tokens of {place}", count)
    elif count == 1:
        said = _("No token of {place}")
    else:
        said = ngettext("Fewer than {count} token of {place}", "Fewer than {count} tokens of {place}", count)
    return said.format(count=count, place=place)


def _counted(leaf: Requirement, names: Names, count: int) -> str:
    """Return what is counted and where, after a number."""
    if leaf.kind.source == "anything":
        # Translators: follows a number and its word, as in "At most 5 NFTs on Base".
        return ngettext("NFT on {chain}", "NFTs on {chain}", count).format(chain=chain_title(leaf.chain))
    place = _place_with_traits(leaf, names)
    if leaf.kind.names_ids:
        # Translators: follows a number and its word, as in "At most 2 of the tokens 1, 2 and 3 of Cats on Base".
        return _("of the tokens {ids} of {place}").format(ids=_ids(leaf, "and"), place=place)
    # Translators: follows a number and its word, as in "At most 5 tokens of Cats on Base".
    return ngettext("token of {place}", "tokens of {place}", count).format(place=place)


def _within(leaf: Requirement, names: Names, least: int, most: int) -> str:
    if most == 0:
        # Translators: {things} is such as "of the tokens 1, 2 and 3 of Cats on Base".
        none_of = _("None {things}")
        # Translators: {things} is such as "token of Cats on Base".
        said = none_of if leaf.kind.names_ids else _("No {things}")
        return said.format(things=_counted(leaf, names, 1))
    things = _counted(leaf, names, most)
    if least == most:
        return _("Exactly {count} {things}").format(count=most, things=things)
    if least == 0:
        return _("At most {count} {things}").format(count=most, things=things)
    return _("{least} to {most} {things}").format(least=least, most=most, things=_counted(leaf, names, 2))


def _outside(leaf: Requirement, names: Names, least: int, most: int) -> str:
    if most == 0:
        return _("At least 1 {things}").format(things=_counted(leaf, names, 1))
    things = _counted(leaf, names, 2)
    if least == 0:
        return _("More than {count} {things}").format(count=most, things=things)
    if least == 1:
        return _("Either none or more than {most} {things}").format(most=most, things=things)
    said = _("Either fewer than {least} or more than {most} {things}")
    return said.format(least=least, most=most, things=things)


def _place(leaf: Requirement, names: Names) -> str:
    collection = names.get((leaf.chain, leaf.contract)) or shorten(leaf.contract)
    return _("{collection} on {chain}").format(collection=collection, chain=chain_title(leaf.chain))


def _place_with_traits(leaf: Requirement, names: Names) -> str:
    place = _place(leaf, names)
    if not leaf.kind.names_trait or not leaf.traits:
        return place
    traits = listed(_trait(kind, wanted) for kind, wanted in leaf.traits)
    return _("{place} with {traits}").format(place=place, traits=traits)


def _trait(kind: str, wanted: str) -> str:
    if (between := range_in(wanted)) is not None:
        return _("{trait} of {first} to {last}").format(trait=kind, first=between[0], last=between[1])
    for sign, said in _BOUNDS.items():
        # Not a regular expression: one that allows spaces at both ends takes cubic time on a text of spaces.
        limit = wanted.strip().removeprefix(sign).strip()
        # A single sign may also begin a text, such as <3.
        bounds_it = len(sign) == 2 or sign in "≥≤" or number_in(limit) is not None
        if limit and wanted.strip().startswith(sign) and bounds_it:
            return _(said).format(trait=kind, limit=limit)
    return _("{trait}: {value}").format(trait=kind, value=wanted)


def _ids(leaf: Requirement, joint: Literal["and", "or"] = "or") -> str:
    told = [_id(entry) for entry in leaf.token_ids[:NAMED_IDS]]
    more = len(leaf.token_ids) - len(told)
    if not more:
        return listed(told, joint)
    # Translators: {ids} are some tokens' ids, {count} is the number of the others.
    return _("{ids} and {count} more").format(ids=series(told), count=more)


def _is_single(entries: Sequence[str]) -> bool:
    if len(entries) != 1:
        return False
    found = bounds(entries[0])
    return found is None or found[0] == found[1]


def _id(entry: str) -> str:
    found = bounds(entry)
    if found is None:
        return shorten(entry)
    first, last = (text if len(text) <= 20 else shorten(text) for text in map(str, found))
    return first if found[0] == found[1] else _("{first} to {last}").format(first=first, last=last)


def automatic_name(
    type_name: str,
    chain: str,
    collection: str | None,
    trait_type: str | None = None,
    trait_value: str | None = None,
    ids: Sequence[str] = (),
    more_traits: Sequence[tuple[str, str]] = (),
    amounts: tuple[int, int] | None = None,
    details: Details | None = None,
) -> str:
    """Return the name that the form proposes for one condition; empty until the collection is known.

    `amounts` are its minimum and its maximum, if it has a maximum.
    """
    kind = rule_type(type_name)
    if details is not None:
        return details.name(chain, collection or "")[:LONGEST_NAME]
    limit = "" if amounts is None else " (none)" if amounts[1] == 0 else f" ({amounts[0]} to {amounts[1]})"
    if kind.source == "anything":
        return f"Any NFT on {capitalised(chain)}{limit}"
    if not collection:
        return ""
    name = collection
    if kind.names_trait and trait_type:
        name = f"{collection} (Trait) - {trait_type}" + (f": {trait_value}" if trait_value else "")
        name += "".join(f", {one}: {value}" for one, value in more_traits)
    elif kind.names_trait:
        name = f"{collection} (Trait-Based)"
    elif kind.names_ids and ids:
        more = "..." if len(ids) > NAMED_TOKEN_IDS else ""
        name = f"{collection} (Token ID) - #{', '.join(ids[:NAMED_TOKEN_IDS])}{more}"
    elif kind.names_ids:
        name = f"{collection} (Token ID)"
    return f"{name[: LONGEST_NAME - len(limit)]}{limit}"


def name_of_negated(name: str) -> str:
    """Return the name of a condition that must not hold, from its own; empty while it has none."""
    # Translators: a condition that must not hold, within a rule's name, as in "Cats and not Foxes".
    return _("not {name}").format(name=name) if name else ""


def composed_name(names: Sequence[str], least: int) -> str:
    """Return the name of a rule from its parts' names, of which it lists three; empty while one has no name yet.

    `least` is how many of the parts must hold; 0 means that none must.
    """
    if not names or not all(names):
        return ""
    shown = first_of(names, NAMED_CONDITIONS)
    if least == len(names):
        name = listed(shown, "and")
    elif least == 1:
        name = listed(shown, "or")
    else:
        heading = _("At least {count} of").format(count=least) if least else _("None of")
        name = f"{heading}: {series(shown)}"
    return name[:LONGEST_NAME]
