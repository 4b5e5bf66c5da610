"""What the bot says comes from the catalogue, and a sentence that does not is seen."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.house.rules import Module
from tests.house.test_rules import product

SHOWN = frozenset({"content", "description", "label", "placeholder", "text", "title"})
"""Names of arguments that people read."""
MAKERS = frozenset(
    {"Button", "Choice", "Embed", "Form", "Reply", "SelectOption", "SlashOption", "choice_part", "slash_command",
     "text_part", "result"}
)  # fmt: skip
"""Functions and classes whose arguments people read."""
WORDS = re.compile(r"[A-Za-z]\S*\s|\s\S*[A-Za-z]")


def outside_of_the_catalogue(module: Module) -> Iterator[str]:
    """Yield each sentence that is shown without having been looked up in the catalogue."""
    errors = (names for path, names in module.imports() if path == "services.core.errors")
    makers = MAKERS.union(*errors)
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call):
            continue
        every = ast.unparse(node.func).rpartition(".")[2] in makers
        shown = [*(node.args if every else ()), *(one.value for one in node.keywords if every or one.arg in SHOWN)]
        for expression in shown:
            for text in _sentences(expression):
                yield f"{module.path}:{expression.lineno}: {text!r} is not in the catalogue: _({text!r})"


def _sentences(node: ast.expr) -> Iterator[str]:
    """Yield the texts of an argument with at least two words; what a call in it returns is that call's matter."""
    match node:
        case ast.Constant(value=str(text)) if WORDS.search(text):
            yield text
        case ast.JoinedStr(values=parts):
            for part in parts:
                yield from _sentences(part.value if isinstance(part, ast.FormattedValue) else part)
        case ast.IfExp(body=one, orelse=other):
            yield from _sentences(one)
            yield from _sentences(other)
        case ast.BinOp(left=one, right=other):
            yield from _sentences(one)
            yield from _sentences(other)
        case ast.Tuple(elts=each) | ast.List(elts=each) | ast.BoolOp(values=each):
            for one in each:
                yield from _sentences(one)
        case _:
            return


def test_what_the_bot_says_is_in_the_catalogue() -> None:
    bot = [module for module in product() if module.room == "bot"]
    assert [breach for module in bot for breach in outside_of_the_catalogue(module)] == []


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ('Reply("Not here")', True),
        ('Reply(_("Not here"), f"{a}\\n{b}", "good")', False),
        ('Reply("", f"{name} is here")', True),
        ('embed(title="Since then")', True),
        ('from services.core.errors import NotFound\nraise NotFound("None of yours.")', True),
        ('from services.core.errors import NotFound\nraise NotFound(_("None of yours."))', False),
        ('raise LibraryError("no text for people")', False),
        ('nextcord.slash_command(name="why", description="Why so")', True),
        ('SlashOption(**named(NP_("command", "why"), N_("Why so")))', False),
        ('Button("holdfast:verify", "Keep it" if a else _("Go"))', True),
        ('log.warning("this is no text for people")', False),
    ],
)
def test_a_sentence_outside_of_the_catalogue_is_seen(source: str, seen: bool) -> None:
    assert bool(list(outside_of_the_catalogue(Module("bot/x.py", source)))) is seen
