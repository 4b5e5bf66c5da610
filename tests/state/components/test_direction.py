"""Screens can be mirrored for a right-to-left language: nothing is placed left or right."""

import re

import pytest

from tests.house.pages import ROOT

# A centre is the same from both sides, and so is a side of the window that a script has measured.
SIDES = re.compile(
    r"""(?<![\w-])(?:
        -?(?:pl|pr|ml|mr|scroll-ml|scroll-mr|scroll-pl|scroll-pr)-(?:\d|\[|auto|px)
        | -?(?:left|right)-(?!1/2\b)(?:\d|\[|auto|px|full)
        | text-(?:left|right) | float-(?:left|right) | clear-(?:left|right)
        | border-[lr](?![a-z]) | rounded-(?:[lr]|tl|tr|bl|br)(?![a-z])
        | (?:margin|padding|border|scroll-margin|scroll-padding)(?:[-_](?:left|right)|Left|Right)
        | text[-_]align["']?:\s*["']?(?:left|right)
    )""",
    re.VERBOSE,
)
LOOKED_AT = (
    *(ROOT / "components").rglob("*.py"), *(ROOT / "assets").glob("*.css"), *(ROOT / "assets" / "screens").glob("*.js"),
)  # fmt: skip


CUT_NAME = re.compile(r"rx\.el\.\w+\(\s*[\w.]*\bname,([^()]*)")
"""An element that shows a name that somebody chose, with its properties."""


def sides(text: str) -> list[str]:
    """Return the left and right placements in a text."""
    return SIDES.findall(text)


def test_nothing_on_the_screens_is_left_or_right() -> None:
    found = {one.relative_to(ROOT).as_posix(): sides(one.read_text()) for one in LOOKED_AT}
    assert {path: these for path, these in found.items() if these} == {}


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ('class_name="pl-4"', True), ("sm:pl-[4.25rem]", True), ("max-sm:[&>a]:-ml-4", True), ("sm:right-6", True),
        ("text-right", True), ("border-l-2", True), ('{"padding_left": "1rem"}', True), ("margin-left: 1px", True),
        ("text-align: right", True), ("{ paddingLeft: 1 }", True), ("rounded-tl-box", True), ("left-auto", True),
        ("ps-4 pe-2 -ms-4 text-end border-s-2 start-0", False), ("left-1/2 -translate-x-1/2", False),
        ("plan-1 html-4 border-line upright-1", False), ("padding-inline-start: 1px", False),
    ],
)  # fmt: skip
def test_a_side_is_seen(text: str, seen: bool) -> None:
    assert bool(sides(text)) is seen


def test_a_name_of_any_script_is_cut_at_its_own_end() -> None:
    shown = [one for path in (ROOT / "components").rglob("*.py") for one in CUT_NAME.findall(path.read_text())]
    cut = [one for one in shown if "cut-name" in one]
    assert len(cut) >= 8
    assert [one for one in shown if "truncate" in one] == []
    assert [one for one in cut if 'dir="auto"' not in one] == []
