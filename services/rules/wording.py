"""The requirements of a rule in words: as one sentence, and as indented lines."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from services.core.addresses import shorten
from services.core.chain_names import chain_title
from services.core.texts import listed
from services.rules.expression import AtLeast, Expression, Not, Requirement
from services.rules.types.token_ids import bounds

Names = Mapping[tuple[str, str], str]
"""`(chain, contract)` → the collection's name, if known."""

NAMED_IDS = 6
"""How many token ids and ranges a sentence lists; it counts the others."""
_BOUNDS = {">=": "at least", "≥": "at least", "<=": "at most", "≤": "at most", ">": "more than", "<": "less than"}


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
        return _condition(tree, names) if holds else _without(tree, names)
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
        return "All of" if holds else "Not all of"
    if tree.n == 1:
        return "Any of" if holds else "None of"
    return f"At least {tree.n} of" if holds else f"Fewer than {tree.n} of"


def _condition(leaf: Requirement, names: Names) -> str:
    if leaf.details is not None:
        return leaf.details.words(_place(leaf, names))
    if leaf.max_tokens is not None:
        return _within(leaf.least, leaf.max_tokens, *_counted(leaf, names))
    if leaf.kind.source == "anything":
        return f"Any NFT on {chain_title(leaf.chain)}"
    if leaf.kind.names_ids and leaf.least > 1:
        return f"At least {leaf.least} of the tokens {_ids(leaf, 'and')} of {_place(leaf, names)}{_with_traits(leaf)}"
    if leaf.kind.names_ids:
        which = f"Token {_ids(leaf)}" if _is_single(leaf.token_ids) else f"Any of the tokens {_ids(leaf)}"
        return f"{which} of {_place(leaf, names)}{_with_traits(leaf)}"
    return f"At least {_amount(leaf.min_tokens)} of {_place(leaf, names)}{_with_traits(leaf)}"


def _without(leaf: Requirement, names: Names) -> str:
    """Return the opposite of a condition in its own words."""
    if leaf.details is not None:
        return leaf.details.opposite(_place(leaf, names))
    if leaf.max_tokens is not None:
        return _outside(leaf.least, leaf.max_tokens, *_counted(leaf, names))
    if leaf.kind.source == "anything":
        return f"No NFT on {chain_title(leaf.chain)}"
    if leaf.kind.names_ids and leaf.least > 1:
        return f"Fewer than {leaf.least} of the tokens {_ids(leaf, 'and')} of {_place(leaf, names)}{_with_traits(leaf)}"
    if leaf.kind.names_ids:
        which = f"Not token {_ids(leaf)}" if _is_single(leaf.token_ids) else f"None of the tokens {_ids(leaf)}"
        return f"{which} of {_place(leaf, names)}{_with_traits(leaf)}"
    place = f"{_place(leaf, names)}{_with_traits(leaf)}"
    return f"No token of {place}" if leaf.min_tokens == 1 else f"Fewer than {_amount(leaf.min_tokens)} of {place}"


def _counted(leaf: Requirement, names: Names) -> tuple[str, str]:
    """Return what is counted and where: for one, and for several."""
    if leaf.kind.source == "anything":
        return f"NFT on {chain_title(leaf.chain)}", f"NFTs on {chain_title(leaf.chain)}"
    place = f"{_place(leaf, names)}{_with_traits(leaf)}"
    if leaf.kind.names_ids:
        of_them = f"of the tokens {_ids(leaf, 'and')} of {place}"
        return of_them, of_them
    return f"token of {place}", f"tokens of {place}"


def _within(least: int, most: int, one: str, several: str) -> str:
    if most == 0:
        return f"{'None' if one.startswith('of ') else 'No'} {one}"
    if least == most:
        return f"Exactly {most} {one if most == 1 else several}"
    return f"At most {most} {one if most == 1 else several}" if least == 0 else f"{least} to {most} {several}"


def _outside(least: int, most: int, one: str, several: str) -> str:
    if most == 0:
        return f"At least 1 {one}"
    more = f"more than {most}"
    if least == 0:
        return f"More than {most} {several}"
    fewer = "none" if least == 1 else f"fewer than {least}"
    return f"Either {fewer} or {more} {several}"


def _amount(least: int) -> str:
    return f"{least} token" if least == 1 else f"{least} tokens"


def _place(leaf: Requirement, names: Names) -> str:
    return f"{names.get((leaf.chain, leaf.contract)) or shorten(leaf.contract)} on {chain_title(leaf.chain)}"


def _with_traits(leaf: Requirement) -> str:
    if not leaf.kind.names_trait or not leaf.traits:
        return ""
    return f" with {listed(_trait(kind, wanted) for kind, wanted in leaf.traits)}"


def _trait(kind: str, wanted: str) -> str:
    first, dots, last = wanted.partition("..")
    if dots and (first := first.strip()) and (last := last.strip()):
        return f"{kind} of {first} to {last}"
    for sign, word in _BOUNDS.items():
        # No regular expression: one that may begin and end in spaces takes cubic time on a text of spaces.
        limit = wanted.strip().removeprefix(sign).strip()
        # A single sign may also begin a text, such as <3.
        if limit and wanted.strip().startswith(sign) and (len(sign) == 2 or sign in "≥≤" or _is_number(limit)):
            return f"{kind} of {word} {limit}"
    return f"{kind}: {wanted}"


def _is_number(text: str) -> bool:
    return text.lstrip("+-").replace(".", "", 1).isdigit()


def _ids(leaf: Requirement, joint: str = "or") -> str:
    told = [_id(entry) for entry in leaf.token_ids[:NAMED_IDS]]
    more = len(leaf.token_ids) - len(told)
    return listed(told, joint) if not more else f"{', '.join(told)} and {more} more"


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
    return first if found[0] == found[1] else f"{first} to {last}"
