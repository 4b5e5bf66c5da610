"""What people read uses plain technical English, and none of the words that only this project used."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from tests.house.pages import DOCS, PAGES, name_of
from tests.house.rules import Module
from tests.house.test_rules import ROOT, modules_of, product, stranger

# The folders whose docstrings and comments are plain. Add a folder once it has been rewritten.
PLAIN = (
    "app",
    "benchmarks",
    "bot",
    "clients/python",
    "components",
    "docs/pictures",
    "gateways",
    "jobs",
    "locales",
    "models",
    "sandbox",
    "services",
    "state",
    "tests",
    "tools",
)
# A migration that was released stays as it was.
UNTOUCHED = "models/migrations/versions/"
CODE = re.compile(r"`[^`]*`")
# `This is no date` for "this is not a date"; "there is no date" is plain.
IS_NO = (
    r"(?<!\b[Tt]here\ )\b(?:is|was)\ no\ "
    r"(?!(?:longer|more|less|fewer|later|older|wider|other|such|need|different|reason|demand|fight)\b)"
)

BANNED = re.compile(
    rf"""
      {IS_NO}
    | \b(?i:whoever|whomever|anew|mend(?:s|ed|ing)?|by\ and\ by)\b
    | \b(?i:but\ for)\b(?!\ (?:example|instance|now)\b)
    | \b(?i:tell|tells|told)\ of\b
    | \b(?i:tells)\b(?!\ (?:apart|a\ person|people|you|us|them|Discord|PostgreSQL|the\ (?:browser|reader|planner)))
    | \b(?i:look(?:s|ed)?\ at|is\ told|are\ told|told\ apart)\b
    | \b(?i:what\ (?:came|comes|became|becomes)\ of)\b
    | \b(?i:stands)\b(?!\ (?:for|in|out)\b)
    | \b(?i:rests)\b
    | \b(?i:(?:of|by)\ (?:it|him|her)self|(?:of|by)\ themselves)\b
    | \b(?i:let(?:s|ting)?\ (?:it\ |them\ )?be)\b
    | \b(?i:for\ good)\b(?!\ \w)
    | \b(?i:in\ the\ end)\b
    | \b(?i:(?:it|that|this|which|row|rows|one|all|and)\ goes)\b(?!\ (?:on|to|into|out|back|through|up|down|over|via)\b)
    | (?:^|(?<=[.:;?!]\s))(?:Who|Whom|Whose)\b(?![^.]*\?)
    """,
    re.VERBOSE,
)

# In pages, screen texts and log lines, `look at`, `tells` and a heading `Who` are plain English.
STRANGE = re.compile(
    rf"""
      {IS_NO}
    | \b(?i:whoever|whomever|anew|mend(?:s|ed|ing)?|by\ and\ by)\b
    | \b(?i:but\ for)\b(?!\ (?:example|instance|now)\b)
    | \b(?i:tell|tells|told)\ of\b
    | \b(?i:what\ (?:came|comes|became|becomes)\ of)\b
    | \b(?i:stands)\b(?!\ (?:for|in|out|by)\b)
    | \b(?i:rests)\b
    | \b(?i:(?:of|by)\ (?:it|him|her)self|(?:of|by)\ themselves)\b
    | \b(?i:let(?:s|ting)?\ (?:it\ |them\ )?be)\b
    | \b(?i:for\ good)\b(?!\ \w)
    | \b(?i:in\ the\ end)\b
    """,
    re.VERBOSE,
)
# Its wording is prescribed.
FIXED = DOCS / "specification.md"
TEXT_OR_COMMENT = re.compile(
    r'''"""(?:[^\\]|\\.)*?"""|\'{3}(?:[^\\]|\\.)*?\'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|#[^\n]*''', re.S
)
CODE_BLOCK = re.compile(r"^ *```.*?^ *```", re.S | re.M)
MESSAGE = re.compile(r"^msgid(?:_plural)? (\".*?\"(?:\n\".*?\")*)$", re.M)
LOGGED = frozenset({"debug", "info", "warning", "error", "exception"})


def strange(text: str) -> list[str]:
    """Return the banned words of a page or a text, each with what is before and after it."""
    plain = CODE.sub("``", " ".join(CODE_BLOCK.sub("", text).split()))
    return [plain[max(0, found.start() - 40) : found.end() + 20] for found in STRANGE.finditer(plain)]


def messages(catalogue: str) -> list[str]:
    """Return the English texts of a catalogue."""
    found: list[str] = MESSAGE.findall(catalogue)
    return ["".join(re.findall(r'"(.*)"', text)) for text in found]


def log_lines(module: Module) -> Iterator[str]:
    """Yield each constant that a module gives a logger to write."""
    for node in module.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LOGGED:
            match node.args:
                case [ast.Constant(value=str(text)), *_]:
                    yield text
                case _:
                    pass


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each comment. Python's own tokenizer takes ten times as long."""
    line, seen = 1, 0
    for found in TEXT_OR_COMMENT.finditer(source):
        if found.group().startswith("#"):
            line, seen = line + source.count("\n", seen, found.start()), found.start()
            yield line, found.group()


def prose(module: Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each docstring and each block of comments, on one line each."""
    for node in module.nodes:
        # A string that is a statement documents the module, class, function or name that it follows.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, " ".join(node.value.value.split())
    block, ends = list[str](), 0
    for line, comment in comments(module.source):
        if block and line != ends + 1:
            yield ends - len(block) + 1, " ".join(block)
            block = []
        block.append(comment.lstrip("#: ").rstrip())
        ends = line
    if block:
        yield ends - len(block) + 1, " ".join(block)


def strange_words(module: Module) -> Iterator[str]:
    """Yield each banned word of a module with its place."""
    for line, text in sorted(prose(module)):
        yield from (f"{module.path}:{line} says {found.group()!r}" for found in BANNED.finditer(CODE.sub("``", text)))


def is_plain(path: str) -> bool:
    """Return whether the module lies in a folder that has been rewritten, or below one."""
    return not path.startswith(UNTOUCHED) and any(one.as_posix() in PLAIN for one in PurePosixPath(path).parents)


def test_the_plain_folders_stay_plain() -> None:
    beside = modules_of(["tools", "benchmarks", "clients", "docs", "tests"])
    modules = [module for module in [*product(), *stranger(), *beside] if is_plain(module.path)]
    assert [fault for module in modules for fault in strange_words(module)] == []


@pytest.mark.parametrize("page", [page for page in PAGES if page != FIXED], ids=name_of)
def test_pages_are_plain(page: Path) -> None:
    assert strange(page.read_text()) == []


def test_texts_and_log_lines_are_plain() -> None:
    texts = messages((ROOT / "locales" / "holdfast.pot").read_text())
    logged = [line for module in [*product(), *stranger()] for line in log_lines(module)]
    assert len(texts) > 2_000
    assert len(logged) > 50
    assert [words for text in [*texts, *logged] for words in strange(text)] == []


def test_a_strange_page_text_or_line_is_noticed() -> None:
    assert strange("Whoever asks is served, and `whoever` is not.") == ["Whoever asks is served, and"]
    assert strange("It is gone\nfor good.\n\n```sh\nmend\n```\n") == ["It is gone for good."]
    assert strange("Each letter stands for a chain. Look at the rules. Who may use it.") == []
    assert messages('msgid ""\n"A rule "\n"rests."\nmsgstr "x"\n\nmsgid "A"\nmsgid_plural "B"\n') == [
        "A rule rests.",
        "A",
        "B",
    ]
    assert list(log_lines(Module("x/y.py", "log.info('mended %s', 1)\nf('x')\nlog.error(x)"))) == ["mended %s"]


def test_every_plain_folder_is_there() -> None:
    assert [folder for folder in PLAIN if not list((ROOT / folder).glob("*.py"))] == []
    assert list(PLAIN) == sorted(set(PLAIN))


@pytest.mark.parametrize(
    "text",
    [
        "Whoever comes first is served.",
        "Count the rows. Who waits goes first.",
        "Read the list anew.",
        "It mends what was lost.",
        "All but for one.",
        "It grows by and by.",
        "Transfers are told of here.",
        "Write it down; tells how many there were.",
        "The member is looked at again.",
        "What came of a change.",
        "The rule stands, and the other rests.",
        "It ends by itself.",
        "It is let be.",
        "The row is gone for good.",
        "All are answered in the end.",
        "It goes with the server.",
    ],
)
def test_a_strange_word_is_noticed(text: str) -> None:
    module = Module("services/x/y.py", f'"""{text}"""\n')
    assert list(strange_words(module))
    assert list(strange_words(Module("services/x/y.py", f"x = 1\n# {text}\n")))


@pytest.mark.parametrize(
    "text",
    [
        "The rest of the REST answers.",
        "A member who left; who asked?",
        "Keep it for good reasons.",
        "The recommended amendment depends on it.",
        "Each letter stands for a chain.",
        "The request goes to the first node.",
        "`mend` is the remedy.",
    ],
)
def test_a_plain_word_is_no_fault(text: str) -> None:
    assert list(strange_words(Module("services/x/y.py", f'"""{text}"""\n'))) == []


def test_a_word_is_noticed_across_lines_and_below_a_name() -> None:
    assert list(strange_words(Module("x/y.py", "# One that is told\n# of here.\nx = 1\n"))) != []
    assert list(strange_words(Module("x/y.py", 'X = 1\n"""What came\nof it."""\n'))) != []
    assert list(strange_words(Module("x/y.py", "x = 'whoever'\n"))) == []


def test_a_folder_covers_those_below_it_but_no_migration() -> None:
    assert is_plain("services/core/x.py")
    assert is_plain("models/db/x.py")
    assert not is_plain("models/migrations/versions/0001_x.py")
    assert not is_plain("nowhere/x.py")
