"""The repository keeps its layout, and each layout rule can fail."""

import ast
import re
import subprocess

import pytest

from tests.house import layout
from tests.house.rules import Module
from tests.house.test_rules import ROOT, modules_of, product, stranger

BESIDE = ("benchmarks", "clients", "tools")
# Pytest loads it, not its importers: its fixtures import the whole product when they start one.
LOADED_BY_PYTEST = "tests/conftest.py"


BEGINS = re.compile(r"^[ \t]*(?:from [\w.]+ )?import\b", re.M)
IMPORT = re.compile(r"^[ \t]*((?:from [\w.]+ )?import (?:\([^)]*\)|[^(\n#]+))(?:[ \t]*#.*)?$", re.M)


def imports_alone(module: Module) -> Module:
    """Return the module with its imports alone, also those in texts; parsing all tests whole takes three seconds.

    The formatter begins a line with each import. A module that does not look as usual is returned whole.
    """
    found = IMPORT.findall(module.source)
    alone = Module(module.path, "\n".join(map(str.strip, found)))
    try:
        ast.parse(alone.source)
    except SyntaxError:
        return module
    return alone if len(found) == len(BEGINS.findall(module.source)) else module


def kept() -> list[str]:
    """Return every file that is under version control or untracked but not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [path for path in listed.stdout.splitlines() if (ROOT / path).exists()]


def test_no_folder_is_too_full_to_take_in_at_a_glance() -> None:
    assert list(layout.full_folders(kept())) == []


def test_packages_import_only_downwards() -> None:
    assert list(layout.imports_up_the_floors([*product(), *stranger()])) == []


def test_every_floor_is_there() -> None:
    missing = [floor for floors in layout.FLOORS.values() for floor in floors if not (ROOT / floor).is_dir()]
    assert missing == []


def test_no_modules_import_one_another() -> None:
    assert list(layout.circles([*product(), *stranger()])) == []
    tests = [imports_alone(one) for one in modules_of([*BESIDE, "tests"]) if one.path != LOADED_BY_PYTEST]
    assert list(layout.circles([*product(), *stranger(), *tests])) == []


def test_no_class_name_stands_for_two_things() -> None:
    assert list(layout.class_names_given_twice(product())) == []
    # The sandbox imports nothing of the product, and a client uses the words of the service it calls: names may repeat.
    for beside in (stranger(), *([*modules_of([room])] for room in BESIDE)):
        assert list(layout.class_names_given_twice(beside)) == []


def test_a_full_folder_is_seen() -> None:
    paths = [f"services/x/{number}.py" for number in range(layout.MOST_ENTRIES)]
    assert list(layout.full_folders(paths)) == []
    assert list(layout.full_folders([*paths, "services/x/y/z.py"])) == ["services/x has 16 entries, more than 15"]


@pytest.mark.parametrize(
    ("path", "source", "breach"),
    [
        ("services/core/x.py", "from services.rules import y", "services/rules is above services/core"),
        ("services/core/x.py", "import services.rules.y", "services/rules is above services/core"),
        ("services/core/x.py", "from services.rules.y import z", "services/rules is above services/core"),
        ("services/rules/x.py", "from services.core.y import z", None),
        ("services/nowhere/x.py", "", "services/nowhere has no floor"),
        ("services/x.py", "from services.rules import y", None),
    ],
)
def test_an_import_upwards_is_seen(path: str, source: str, breach: str | None) -> None:
    others = [Module("services/rules/y.py", ""), Module("services/core/y.py", "")]
    found = list(layout.imports_up_the_floors([Module(path, source), *others]))
    assert (found == []) if breach is None else (len(found) == 1 and breach in found[0])


def test_a_circle_is_seen() -> None:
    one, two = Module("services/a.py", "from services import b"), Module("services/b.py", "import services.c")
    three = Module("services/c.py", "def f():\n    from services.a import g")
    assert list(layout.circles([one, two, three])) == ["a circle: services/a.py, services/b.py, services/c.py"]
    assert list(layout.circles([one, two, Module("services/c.py", "")])) == []


@pytest.mark.parametrize(
    "source",
    [
        "import x.a\nfrom x import (\n    b,\n    c,\n)\nf()",
        "def f():\n    if g:\n        from x import a  # now\n    import x.b, x.c",
        "from x import a, \\\n    b\nfrom .x import c",
        '"""\nimport what you\nlike\n"""\nimport x.a',
        "from x import (  # (both)\n    a, b,\n)",
    ],
)
def test_imports_are_found_alone_as_in_the_whole_module(source: str) -> None:
    whole = Module("x/y.py", source)
    assert imports_alone(whole).imports == whole.imports


def test_a_class_name_given_twice_is_seen() -> None:
    modules = [Module("bot/x.py", "class Seen: ..."), Module("jobs/x.py", "class Seen: ...\nclass Other: ...")]
    assert list(layout.class_names_given_twice(modules)) == ["Seen is a class in bot/x.py, jobs/x.py"]
