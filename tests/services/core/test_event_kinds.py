"""The declared kinds of events: no other can be recorded, and screens, filter, undo and pages use the same list."""

import re
from collections import Counter
from typing import Any

import pytest
from reflex_components_lucide.icon import LUCIDE_ICON_LIST

from services.core import audit
from services.core.event_kinds import EVENT_KINDS, EventGroup, filters
from services.servers import activity, undo
from settings import ROOT


def test_a_kind_that_is_not_declared_cannot_be_recorded() -> None:
    undeclared: Any = "rule.admired"
    with pytest.raises(ValueError, match=r"rule\.admired"):
        audit.line(undeclared)


def test_a_filter_finds_every_kind_of_its_group_and_no_other() -> None:
    assert [name for _, name in filters()] == [group.value for group in EventGroup]
    families = Counter(family for found, _ in filters() for family in found.split(","))
    assert set(families.values()) == {1}
    groups = {family: name for found, name in filters() for family in found.split(",")}
    told = {kind: groups.get(kind.partition(".")[0]) for kind in EVENT_KINDS}
    assert told == {kind: declared.group for kind, declared in EVENT_KINDS.items()}


def test_what_can_be_undone_has_a_verb_that_undoes_it() -> None:
    assert undo.VERBS.keys() == activity.UNDOABLE
    assert "rule.deleted" in activity.UNDOABLE


def test_every_icon_is_one_of_lucides() -> None:
    assert {declared.icon.replace("-", "_") for declared in EVENT_KINDS.values()} - set(LUCIDE_ICON_LIST) == set()


def test_the_operators_page_names_every_kind_that_is_declared() -> None:
    page = (ROOT / "docs" / "operating.md").read_text()
    (table,) = re.findall(r"^\| Kind \| Means \|\n(.+?)\n\n", page, re.M | re.S)
    named = {kind for row in table.splitlines() for kind in re.findall(r"`(\w+\.\w+)`", row.split(" | ")[0])}
    (without,) = re.findall(r"^Events without a server \((.+?)\)", page, re.M | re.S)
    apart = set(re.findall(r"`(\w+\.\w+)`", without))
    assert named == {kind for kind, declared in EVENT_KINDS.items() if declared.group}
    assert apart == {kind for kind, declared in EVENT_KINDS.items() if not declared.group}
