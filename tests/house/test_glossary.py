"""The glossary is short and in order, and its folders and tables exist."""

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from sqlmodel import SQLModel

import models
from tests.house.pages import DOCS, ROOT

MOST = 40
NAMES = re.compile(r"`([^`]+)`")


class Entry(NamedTuple):
    """A word with its meaning, and the names in its columns of folders and tables."""

    word: str
    meaning: str
    folders: tuple[str, ...]
    tables: tuple[str, ...]


def entries(page: str) -> list[Entry]:
    """Return every row of the glossary's table below its heading."""
    rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in page.splitlines() if line.startswith("| ")]
    return [
        Entry(word, meaning, tuple(NAMES.findall(folders)), tuple(NAMES.findall(tables)))
        for word, meaning, folders, tables in rows[1:]
    ]


def faults(found: list[Entry], folders: Collection[str], tables: Collection[str]) -> Iterator[str]:
    """Yield faults of the rows: order, duplicates, length, and folders and tables that do not exist."""
    words = [entry.word for entry in found]
    if len(words) > MOST:
        yield f"{len(words)} words"
    if words != sorted(set(words)):
        yield "not in order, or twice"
    for entry in found:
        if not entry.folders:
            yield f"{entry.word}: no folder"
        if len(re.findall(r"[.?!](?= |$)", entry.meaning)) > 2:
            yield f"{entry.word}: more than two sentences"
        yield from (f"{entry.word}: no folder {name}" for name in entry.folders if name not in folders)
        yield from (f"{entry.word}: no table {name}" for name in entry.tables if name not in tables)


def test_every_row_of_the_glossary_is_in_order_and_true() -> None:
    assert models.Grant.__tablename__ in SQLModel.metadata.tables
    found = entries((DOCS / "glossary.md").read_text())
    packages = {path.parent.name for room in (ROOT, ROOT / "services") for path in room.glob("*/__init__.py")}
    assert found
    assert list(faults(found, packages, SQLModel.metadata.tables.keys())) == []


def test_a_row_that_is_wrong_is_noticed() -> None:
    page = (
        "| Word | What it means | Folder | Table |\n|---|---|---|---|\n"
        "| role | A role. | `roles` | `grant` |\n"
        "| claim | One. Two. Three. | `nowhere` | |\n"
        "| due | A row. | | `gone` |\n"
    )
    found = entries(page)
    assert [entry.word for entry in found] == ["role", "claim", "due"]
    assert list(faults(found, {"roles"}, {"grant"})) == [
        "not in order, or twice",
        "claim: more than two sentences",
        "claim: no folder nowhere",
        "due: no folder",
        "due: no table gone",
    ]
    many = [Entry(f"{at:03}", "A word.", ("roles",), ()) for at in range(MOST + 1)]
    assert list(faults(many, {"roles"}, ())) == ["41 words"]
