"""The commands on pages for people exist: targets of make, modules to run, settings to set."""

import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.house.pages import PAGES, ROOT, name_of
from tools.prepare import TARGETS

TYPED = re.compile(r"`([^`\n]+)`|^(?:    )?((?:[A-Z_]+=\S+ )*(?:make|\.venv/bin/\S+|python3?)\b.*)$", re.M)


def targets() -> frozenset[str]:
    """Return every target of make."""
    (listed,) = re.findall(r"^TARGETS := (.+)$", (ROOT / "Makefile").read_text(), re.M)
    return frozenset([*listed.split(), "help"])


def typed(page: str) -> Iterator[str]:
    """Yield texts in backticks, and example lines that begin with a command."""
    for quoted, line in TYPED.findall(page):
        yield (quoted or line).partition("#")[0].strip()


def cannot_be_typed(text: str) -> Iterator[str]:
    """Yield the targets and modules in a command that do not exist."""
    words = [word for word in text.split() if not re.fullmatch(r"[A-Z_]+=.*", word)]
    if words[:1] == ["make"]:
        yield from (f"make {word}" for word in words[1:2] if word not in targets())
    if len(words) > 2 and words[0].rpartition("/")[2] in {"python", "python3"} and words[1] == "-m":
        yield from (f"python -m {word}" for word in words[2:3] if not _runs(word))


def _runs(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_a_page_says_to_type_can_be_typed(page: Path) -> None:
    assert [wrong for text in typed(page.read_text()) for wrong in cannot_be_typed(text)] == []


def imported(page: str) -> Iterator[tuple[str, str]]:
    """Yield our modules and names that a line of Python in a command imports."""
    ours = "|".join(path.name for path in ROOT.iterdir() if (path / "__init__.py").exists())
    yield from re.findall(rf"-c '[^']*from ((?:{ours})[\w.]*) import (\w+)", page)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_a_command_on_a_page_imports_is_there(page: Path) -> None:
    assert [one for one in imported(page.read_text()) if not hasattr(import_module(one[0]), one[1])] == []


def test_a_command_that_imports_is_seen() -> None:
    assert list(imported("x=$(python -c 'from app.nowhere import y; y()')")) == [("app.nowhere", "y")]


def test_every_target_of_make_is_told_by_its_help_and_has_its_function() -> None:
    told = set(re.findall(r'@echo "make ([\w-]+)', (ROOT / "Makefile").read_text()))
    assert told == targets() - {"help"}
    assert targets() - {"help"} <= TARGETS.keys()


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("make nowhere", ["make nowhere"]),
        ("PORT=1 make run", []),
        ("make restore FILE=x FORCE=1", []),
        (".venv/bin/python -m app.nowhere", ["python -m app.nowhere"]),
        (".venv/bin/python -m app.build", []),
        ("python3 -m jobs sweep --now", []),
        ("make", []),
    ],
)
def test_what_cannot_be_typed_is_seen(text: str, wrong: list[str]) -> None:
    assert list(cannot_be_typed(text)) == wrong


def test_commands_are_found_in_sentences_and_in_examples() -> None:
    page = "Type `make run`.\n\n```sh\nmake test    # all\nPORT=1 make dev\n```\n    .venv/bin/python -m jobs\n"
    assert list(typed(page)) == ["make run", "make test", "PORT=1 make dev", ".venv/bin/python -m jobs"]
