"""Discord's markdown, for the preview of the panel: a text as blocks, and each block as runs of one style.

The rules are Discord's own (docs/facts.md#discord-messages). Nothing here is HTML: a screen draws the runs.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from locales import _

MOST_NESTED = 6
"""How deep styles may be nested; deeper marks stay as typed."""


@dataclass(frozen=True, slots=True)
class StyledRun:
    """A part of a line in one style; `kind` is empty, `code`, `link`, `mention`, `spoiler` or `break`."""

    text: str
    bold: bool = False
    italic: bool = False
    underline: bool = False
    strike: bool = False
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """One block: `text`, `h1` to `h3`, `small`, `quote`, `code`, `bullet` or `number`.

    `mark` is a numbered item's number, `depth` an item's indentation.
    """

    kind: str
    runs: tuple[StyledRun, ...]
    mark: str = ""
    depth: int = 0


_FENCE = re.compile(r"```(?:[A-Za-z0-9_+.#-]*\n)?(.*?)```", re.DOTALL)
_LINES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("h1", re.compile(r"# +(?P<text>\S.*)")),
    ("h2", re.compile(r"## +(?P<text>\S.*)")),
    ("h3", re.compile(r"### +(?P<text>\S.*)")),
    ("small", re.compile(r"-# +(?P<text>\S.*)")),
    ("quote", re.compile(r">(?:>>)? (?P<text>.*)")),
    ("bullet", re.compile(r"(?P<indent> *)[-*] +(?P<text>\S.*)")),
    ("number", re.compile(r"(?P<indent> *)(?P<mark>\d{1,9})\. +(?P<text>\S.*)")),
)
_REST = ">>> "
_INLINE = re.compile(
    r"\\(?P<escaped>[\\*_~`|<>\[\]()#-])"
    r"|(?P<tick>`++)(?P<code>[^`]++)(?P=tick)(?!`)"
    r"|\[(?P<label>[^\[\]\n]+)\]\(<?https?://[^\s()<>]+>?\)"
    r"|<(?P<angle>https?://[^\s<>]+)>"
    r"|(?P<link>https?://[^\s<>]*[^\s<>.,:;!?'\")\]])"
    r"|<(?P<mention>@!?[0-9]+|@&[0-9]+|#[0-9]+|a?:\w{2,32}:[0-9]+|t:[0-9]{1,13}(?::[tTdDfFR])?)>"
    r"|\|\|(?P<spoiler>[^|]+)\|\|"
    r"|\*\*(?P<bold>(?:[^*]|\*(?!\*))+\*?)\*\*"
    r"|__(?P<underline>(?:[^_]|_(?!_))+)__(?!_)"
    r"|~~(?P<strike>[^~]+)~~"
    r"|\*(?P<star>[^\s*](?:[^*]*[^\s*])?)\*(?!\*)"
    r"|(?<!\w)_(?P<low>[^\s_](?:[^_]*[^\s_])?)_(?!\w)"
)
_NAMES = {"@": "@member", "@&": "@role", "#": "#channel"}


def blocks(text: str) -> tuple[Block, ...]:
    """Return a text of several lines divided into blocks as Discord divides it."""
    found: list[Block] = []
    end = 0
    for fence in _FENCE.finditer(text):
        found += _line_blocks(text[end : fence.start()].removesuffix("\n"))
        found.append(Block("code", (StyledRun(fence[1].strip("\n")),)))
        end = fence.end()
    found += _line_blocks(text[end:].removeprefix("\n") if end else text)
    return tuple(found)


def runs(text: str) -> tuple[StyledRun, ...]:
    """Return one line, such as an embed's title, divided into runs of one style."""
    return tuple(_runs(text, StyledRun(""), MOST_NESTED))


def _line_blocks(text: str) -> list[Block]:
    if not text:
        return []
    lines = text.split("\n")
    place = next((at for at, line in enumerate(lines) if line.startswith(_REST)), len(lines))
    found: list[Block] = []
    for kind, alike in groupby(map(_block, lines[:place]), key=lambda one: one.kind):
        if kind in {"text", "quote"}:
            first, *others = alike
            added = (run for one in others for run in (StyledRun("", kind="break"), *one.runs))
            found.append(replace(first, runs=(*first.runs, *added)))
        else:
            found += alike
    if place < len(lines):
        rest = "\n".join([lines[place].removeprefix(_REST), *lines[place + 1 :]])
        found.append(Block("quote", _broken(rest)))
    return found


def _block(line: str) -> Block:
    for kind, pattern in _LINES:
        if (match := pattern.fullmatch(line)) is not None:
            parts = match.groupdict()
            indent = len(parts.get("indent") or "") // 2
            return Block(kind, runs(parts["text"]), parts.get("mark") or "", min(indent, 3))
    return Block("text", runs(line))


def _broken(text: str) -> tuple[StyledRun, ...]:
    found: list[StyledRun] = []
    for place, line in enumerate(text.split("\n")):
        found += [StyledRun("", kind="break")] if place else []
        found += runs(line)
    return tuple(found)


def _runs(text: str, style: StyledRun, depth: int) -> Iterator[StyledRun]:
    """Yield the runs of a text within a style. Marks without a partner stay as typed."""
    end, typed = 0, ""
    for match in _INLINE.finditer(text):
        typed += text[end : match.start()]
        end = match.end()
        if match["escaped"]:
            typed += match["escaped"]
            continue
        if typed:
            yield replace(style, text=typed)
            typed = ""
        yield from _styled(match, style, depth)
    if typed := typed + text[end:]:
        yield replace(style, text=typed)


def _styled(match: re.Match[str], style: StyledRun, depth: int) -> Iterator[StyledRun]:
    kind = match.lastgroup or ""
    inner = match[kind]
    if depth == 0:
        yield replace(style, text=match[0])
    elif kind in {"angle", "link"}:
        yield replace(style, text=inner, kind="link")
    elif kind == "code":
        yield replace(style, text=inner.strip(), kind="code")
    elif kind == "mention":
        yield replace(style, text=_mentioned(inner), kind="mention")
    elif kind in {"label", "spoiler"}:
        yield from _runs(inner, replace(style, kind="link" if kind == "label" else "spoiler"), depth - 1)
    else:
        name = "italic" if kind in {"star", "low"} else kind
        yield from _runs(inner, replace(style, **{name: True}), depth - 1)


def _mentioned(inner: str) -> str:
    """Return the preview's placeholder for a mention, an emoji or a time, whose name only Discord knows."""
    if inner.startswith("t:"):
        return _("a time")
    if inner.lstrip("a").startswith(":"):
        return f":{inner.split(':')[1]}:"
    return _NAMES[inner.rstrip("0123456789").rstrip("!")]
