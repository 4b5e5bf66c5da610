"""What people read comes from the catalogue, and a sentence that does not is seen."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.house.rules import Module
from tests.house.test_rules import product

SHOWN = frozenset(
    {"alt", "aria_label", "content", "description", "hint", "label", "mend", "message", "placeholder", "text", "title"}
)
"""Names of arguments that people read."""
MAKERS = frozenset(
    {"Button", "Choice", "Embed", "Form", "Reply", "SelectOption", "SlashOption", "choice_part", "slash_command",
     "text_part", "result"}
)  # fmt: skip
"""Functions and classes whose arguments people read."""
ON_SCREENS = frozenset(
    {"badge", "button", "bullets", "card_title", "chapter", "empty", "heading", "link", "link_button", "reading",
     "refuse", "sentence", "show", "steps", "tell"}
    | {"a", "button", "caption", "code", "dd", "dt", "figcaption", "h1", "h2", "h3", "h4", "label", "legend", "li",
       "option", "p", "span", "strong", "summary", "td", "th"}
)  # fmt: skip
"""Elements and functions of the screens whose arguments without a name people read, and the toasts of states."""
STILL_ENGLISH = frozenset(
    {
        "components/pages/help/deployment.py",
        "components/pages/help/oauth_help.py",
        "services/collections/lookup.py",
        "services/rules/expression.py",
        "services/rules/moving/brought.py",
        "services/rules/moving/collabland.py",
        "services/rules/moving/documents.py",
        "services/rules/moving/guild.py",
        "services/rules/moving/imports.py",
        "services/rules/moving/own_format.py",
    }
)
"""Modules with sentences that nobody has translated yet. The set only gets smaller."""
WORDS = re.compile(r"[A-Za-z]\S*\s|\s\S*[A-Za-z]")


def outside_of_the_catalogue(module: Module) -> Iterator[str]:
    """Yield each sentence that is shown without having been looked up in the catalogue."""
    errors = (names for path, names in module.imports() if path == "services.core.errors")
    makers = MAKERS.union(*errors) | (ON_SCREENS if module.room in {"components", "state"} else frozenset[str]())
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call):
            continue
        maker = ast.unparse(node.func).rpartition(".")[2]
        every = maker in makers or (module.room == "services" and maker.endswith("Refused"))
        named = [one for one in node.keywords if one.arg in SHOWN or (every and one.arg not in {"class_name", "id"})]
        shown = [*(node.args if every else ()), *(one.value for one in named)]
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


def shown_by_the_product() -> Iterator[Module]:
    """Yield each module that shows something to people."""
    yield from (one for one in product() if one.room in {"bot", "components", "services", "state"})


def test_what_people_read_is_in_the_catalogue() -> None:
    found = [breach for one in shown_by_the_product() if one.path not in STILL_ENGLISH
             for breach in outside_of_the_catalogue(one)]  # fmt: skip
    assert found == []


def test_a_module_that_was_translated_stays_so() -> None:
    english = {one.path for one in shown_by_the_product() if any(outside_of_the_catalogue(one))}
    assert STILL_ENGLISH - english == set(), "take it off the set"


@pytest.mark.parametrize(
    ("path", "source", "seen"),
    [
        ("bot/x.py", 'Reply("Not here")', True),
        ("bot/x.py", 'Reply(_("Not here"), f"{a}\\n{b}", "good")', False),
        ("bot/x.py", 'Reply("", f"{name} is here")', True),
        ("bot/x.py", 'embed(title="Since then")', True),
        ("bot/x.py", 'from services.core.errors import NotFound\nraise NotFound("None of yours.")', True),
        ("bot/x.py", 'from services.core.errors import NotFound\nraise NotFound(_("None of yours."))', False),
        ("bot/x.py", 'raise LibraryError("no text for people")', False),
        ("bot/x.py", 'nextcord.slash_command(name="why", description="Why so")', True),
        ("bot/x.py", 'SlashOption(**named(NP_("command", "why"), N_("Why so")))', False),
        ("bot/x.py", 'Button("holdfast:verify", "Keep it" if a else _("Go"))', True),
        ("bot/x.py", 'log.warning("this is no text for people")', False),
        ("components/x.py", 'rx.el.p("Not here", class_name="muted mt-2")', True),
        ("components/x.py", 'rx.el.p(_("Not here"), class_name="muted mt-2")', False),
        ("components/x.py", 'rx.el.input(placeholder="Your name")', True),
        ("components/x.py", 'rx.el.nav(aria_label="Main pages")', True),
        ("state/x.py", 'await refuse(self, "Not done", _("Try again."))', True),
        ("services/x.py", 'BotHealth(state=BAD, text="The bot is away.")', True),
        ("services/x.py", 'from services.core.errors import Conflict\nraise Conflict(f"It is {a} now.")', True),
    ],
)  # fmt: skip
def test_a_sentence_outside_of_the_catalogue_is_seen(path: str, source: str, seen: bool) -> None:
    assert bool(list(outside_of_the_catalogue(Module(path, source)))) is seen
