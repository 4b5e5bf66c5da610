"""The decisions are numbered and listed, answer the same questions, and quote only measurements that were made."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.house.pages import DECISIONS, DOCS

NUMBERED = sorted(page for page in DECISIONS.glob("*.md") if page.name != "README.md")
HEADINGS = ("Status", "Decision", "Why", "What we weighed", "What would change our mind")
NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
MEASURED = re.compile(rf"(?<![\w.,])({NUMBER})(?: ?%|\s+(?:µs|ms|MB|statements|requests|times|members)\b)")


def misnumbered(names: Sequence[str]) -> Iterator[str]:
    """Yield the names that do not begin with their place in the order."""
    for place, name in enumerate(names, 1):
        if not name.startswith(f"{place:04}-"):
            yield name


def odd_headings(page: str) -> list[str]:
    """Return a page's headings unless they are the five required ones in order."""
    found = re.findall(r"^## (.+)$", page, re.M)
    return [] if tuple(found) == HEADINGS else found or ["none"]


def never_measured(page: str, performance: str) -> Iterator[str]:
    """Yield numbers with a unit that are missing on the page about performance."""
    taken = set(re.findall(NUMBER, performance))
    yield from (number for number in MEASURED.findall(page) if number not in taken)


def test_the_decisions_are_numbered_without_a_gap() -> None:
    assert NUMBERED
    assert list(misnumbered([page.name for page in NUMBERED])) == []


def test_the_index_lists_every_decision_in_order() -> None:
    listed = re.findall(r"^\| \[(\d{4})\]\(([^)]+)\) \|", (DECISIONS / "README.md").read_text(), re.M)
    assert listed == [(page.name[:4], page.name) for page in NUMBERED]


@pytest.mark.parametrize("page", NUMBERED, ids=lambda page: page.stem)
def test_a_decision_answers_the_same_questions_as_the_others(page: Path) -> None:
    text = page.read_text()
    assert text.startswith(f"# {page.name[:4]}: ")
    assert odd_headings(text) == []


@pytest.mark.parametrize("page", NUMBERED, ids=lambda page: page.stem)
def test_a_decision_quotes_only_what_was_measured(page: Path) -> None:
    assert list(never_measured(page.read_text(), (DOCS / "performance.md").read_text())) == []


def test_a_page_that_differs_is_noticed() -> None:
    assert list(misnumbered(["0001-a.md", "0003-c.md"])) == ["0003-c.md"]
    assert odd_headings("# 0001: A\n\n## Decision\n\n## Why\n") == ["Decision", "Why"]
    assert odd_headings("# 0001: A\n") == ["none"]
    page = "It takes 3.10 µs, or 9.9 ms, for 100,000 members and 7 % of ERC-721 in version 18."
    assert list(never_measured(page, "| Holdfast | 3.10 (1.75-4.50) | 100,000 |")) == ["9.9", "7"]
