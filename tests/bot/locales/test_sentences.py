"""Texts for people come from the catalogue, and one that does not is found."""

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
"""Elements and functions of the screens whose unnamed arguments people read, and the states' toasts."""
FOR_OPERATORS = frozenset(
    {
        "app/api/__init__.py", "app/api/requests/openapi.py", "bot/__main__.py", "gateways/chains/chain_file.py",
        "jobs/__main__.py", "services/accounts/encryption.py",
        "services/health/metrics.py", "services/health/readiness.py",
    }
)  # fmt: skip
"""Modules whose sentences only operators and programmers read: logs, the command line and the API reference."""
LOOKED_UP = frozenset({"_", "N_", "NP_", "forms", "counted", "ngettext", "pgettext", "storable", "storable_count"})
LOGGED = frozenset({"critical", "debug", "error", "exception", "info", "warning"})
WHOLE = re.compile(r"[“\"]?[A-Z{][^\n]*\s\S[^\n]*[.?!]")
"""A whole sentence, wherever it occurs."""
WORD = re.compile(r"[A-Za-z]?[a-z]{2,}")
WORDS = re.compile(r"[A-Za-z]\S*\s|\s\S*[A-Za-z]")


def outside_of_the_catalogue(module: Module) -> Iterator[str]:
    """Yield each sentence that is shown without a lookup in the catalogue."""
    errors = (names for path, names in module.imports if path == "services.core.errors")
    makers = MAKERS.union(*errors) | (ON_SCREENS if module.room in {"components", "state"} else frozenset[str]())
    for node in module.nodes:
        if not isinstance(node, ast.Call):
            continue
        maker = ast.unparse(node.func).rpartition(".")[2]
        every = maker in makers or (module.room == "services" and maker.endswith("Refused"))
        named = [one for one in node.keywords if one.arg in SHOWN or (every and one.arg not in {"class_name", "id"})]
        shown = [*(node.args if every else ()), *(one.value for one in named)]
        for expression in shown:
            for text in _sentences(expression):
                yield f"{module.path}:{expression.lineno}: {text!r} is not in the catalogue: _({text!r})"


def single_words(module: Module) -> Iterator[str]:
    """Yield each word alone that an element of a screen or a badge shows without a lookup in the catalogue."""
    for node in module.nodes if module.room == "components" else ():
        match node:
            case ast.Call(func=func, args=[ast.Constant(value=str(word)), *_]) if WORD.fullmatch(word):
                maker = ast.unparse(func)
                if maker == "badge" or (maker.startswith("rx.el.") and maker != "rx.el.code"):
                    yield f"{module.path}:{node.lineno}: {word!r} is not in the catalogue: _({word!r})"
            case _:
                pass


def whole_sentences(module: Module) -> Iterator[str]:
    """Yield each whole sentence outside of the catalogue, including one that is returned or kept in a constant."""
    if module.path not in FOR_OPERATORS:
        yield from (f"{module.path}:{line}: {text!r}" for line, text in _whole(module.tree))


def _whole(node: ast.AST) -> Iterator[tuple[int, str]]:
    match node:
        case ast.Constant(value=str(text)) if WHOLE.fullmatch(text):
            yield node.lineno, text
        case ast.JoinedStr(values=parts):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts)
            if WHOLE.fullmatch(text):
                yield node.lineno, text
        case ast.Expr(value=ast.Constant()) | ast.Assert():
            return  # a docstring, or a text that only programmers read
        case ast.Call(func=func) if ast.unparse(func).rpartition(".")[2] in LOOKED_UP | LOGGED:
            return
        case ast.AnnAssign(target=ast.Name(id="PROBLEMS")):
            return  # the reference for programmers
        case ast.Raise(exc=ast.Call(func=func)) if ast.unparse(func).endswith("Error"):
            return
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _whole(child)


def _sentences(node: ast.expr) -> Iterator[str]:
    """Yield the texts of an argument with at least two words, leaving out the results of calls in it."""
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


def within_f_strings(module: Module) -> Iterator[str]:
    """Yield the texts looked up within an f-string: on Python 3.11 Babel does not find them there."""
    for node in module.nodes:
        if isinstance(node, ast.JoinedStr):
            for call in ast.walk(node):
                match call:
                    case ast.Call(func=ast.Name(id="_" | "N_" | "ngettext"), args=[ast.Constant(value=str(text)), *_]):
                        yield f"{module.path}:{call.lineno} {text}"
                    case _:
                        pass


def shown_by_the_product() -> Iterator[Module]:
    """Yield each module that shows people something."""
    yield from (one for one in product() if one.room in {"bot", "components", "services", "state"})


def test_what_people_read_is_in_the_catalogue() -> None:
    shown = [*shown_by_the_product()]
    assert [breach for one in shown for breach in (*outside_of_the_catalogue(one), *single_words(one))] == []


def test_no_sentence_is_outside_of_the_catalogue_wherever_it_stands() -> None:
    rooms, front = {"bot", "components", "gateways", "jobs", "services", "state"}, ("app/api/", "app/http/")
    looked_at = [one for one in product() if one.room in rooms or one.path.startswith(front)]
    # Programs read the examples in the API description, which are in English.
    looked_at = [one for one in looked_at if one.path != "app/api/requests/examples.py"]
    assert [found for one in looked_at for found in whole_sentences(one)] == []


def test_no_text_is_looked_up_within_an_f_string() -> None:
    assert [found for one in product() for found in within_f_strings(one)] == []
    assert list(within_f_strings(Module("bot/x.py", "said = f\"{_('Being given now.')} {_(SAFETY)}\""))) == [
        "bot/x.py:1 Being given now."
    ]


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ('TOLD = "Nobody reads this in Japanese."', True),
        ('TOLD = N_("Nobody reads this in English only.")', False),
        ('def said(name):\n    return f"{name} is not here."', True),
        ('def said(name):\n    return _("{name} is not here.").format(name=name)', False),
        ('faults.append("The panel was deleted.")', True),
        ('answer = {"message": "There is no such call."}', True),
        ('"""A docstring is a sentence."""', False),
        ('log.warning("A provider gave no answer.")', False),
        ('raise ValueError("Only a programmer reads this.")', False),
        ('raise NotThere("This is read by people.")', True),
        ('query = "SELECT id FROM rule WHERE id = 1"', False),
    ],
)
def test_a_whole_sentence_is_seen(source: str, seen: bool) -> None:
    assert bool(list(whole_sentences(Module("services/x.py", source)))) is seen


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
        ("bot/x.py", 'log.warning("this is not text for people")', False),
        ("components/x.py", 'rx.el.p("Not here", class_name="muted mt-2")', True),
        ("components/x.py", 'rx.el.p(_("Not here"), class_name="muted mt-2")', False),
        ("components/x.py", 'rx.el.input(placeholder="Your name")', True),
        ("components/x.py", 'rx.el.nav(aria_label="Main pages")', True),
        ("state/x.py", 'await refuse(self, "Not done", _("Try again."))', True),
    ],
)  # fmt: skip
def test_a_sentence_outside_of_the_catalogue_is_seen(path: str, source: str, seen: bool) -> None:
    assert bool(list(outside_of_the_catalogue(Module(path, source)))) is seen


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ('badge("gains", "good")', True),
        ('badge(_("gains"), "good")', False),
        ('rx.el.span("Unknown")', True),
        ('rx.el.code("healthy")', False),
        ('rx.el.a("/api/docs")', False),
        ('rx.icon("lock")', False),
    ],
)
def test_a_word_outside_of_the_catalogue_is_seen(source: str, seen: bool) -> None:
    assert bool(list(single_words(Module("components/x.py", source)))) is seen
