"""The pages for people are true and complete: names on them exist, and what must be documented is named."""

import json
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from os.path import normpath
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from pydantic import SecretStr
from sqlmodel import SQLModel

import models  # noqa: F401
from gateways.chains.catalogue import CHAINS, evm_chains
from jobs.scheduler import all_jobs
from settings import Settings
from tests.house.pages import DOCS, PAGES, README, ROOT, name_of
from tools import module_index

# Created by a start or by the operator, so absent in a fresh clone.
MADE = re.compile(r"(?:data|\.venv|\.web)(?:/|$)|\.env$")
CODE_BLOCK = re.compile(r"^ *```.*?^ *```", re.S | re.M)
IN_BACKTICKS = re.compile(r"`([^`\n]+)`")
IN_MODULE = re.compile(r"`([\w./-]+\.py)` \(([^()]*`[^()]*)\)")
PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*/?")
ENDINGS = (".py", ".md", ".txt", ".in", ".toml", ".json", ".css", ".env", ".example")
LINK = re.compile(r"""(?:\]\(|src=")([^)"#:]+)(?:#[^)"]*)?[)"]""")

# Files that may refer to a document. The samples in this folder's tests are excluded.
REFERRING = frozenset({".py", ".md", ".toml", ".in", ".yaml", ".css", ".env", ".example", ".sol", ""})
SAMPLES = "tests/house/"
ADDRESS = re.compile(r"https?://[^\s<>)\"'`]+|^(?:---|\+\+\+) [ab]/\S+$", re.M)
"""An address elsewhere, or a file named by a diff."""
PAGE_NAMED = re.compile(r"([\w./-]*[\w-]\.md)\b(?:#([\w-]+))?")
OF_THE_MACHINE = frozenset({"HOLDFAST_STARTED", "HOLDFAST_SUPERVISED", "LC_ALL", "PATH"})
"""Variables that the supervisor sets for its processes, or that every machine has."""
WITHIN_PAGE = re.compile(r"\]\(#([^)]*)\)")
SECTION_OF_NOTHING = re.compile(r"(?<!RFC \d{4} )(?<!RFC \d{4}bis )§ ?[\d.]*")
ABSENT = re.compile(r"\bexternal(?:-apis| facts)\b|\bfacts/\w+|\bdesign, section\b")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.M)


def missing(names: Iterable[str], page: str) -> Iterator[str]:
    """Yield the names that are not in backticks on the page."""
    told = {text.lower() for text in IN_BACKTICKS.findall(CODE_BLOCK.sub("", page))}
    yield from (name for name in names if name.lower() not in told)


def wrong_defaults(defaults: Mapping[str, Any], page: str) -> Iterator[str]:
    """Yield the settings whose row in a table shows another default than the code has."""
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", page, re.M))
    for name, default in defaults.items():
        plain = default.get_secret_value() if isinstance(default, SecretStr) else default
        wanted = "—" if plain in (None, "") else f"`{plain}`"
        if rows.get(name) != wanted:
            yield f"{name}: {rows.get(name)} instead of {wanted}"


def requirements(text: str) -> Iterator[str]:
    """Yield the names in a requirements file, without versions, extras and comments."""
    for line in text.splitlines():
        if found := re.match(r"[A-Za-z0-9][\w.-]*", line):
            yield found[0]


def npm_packages(manifest: str) -> Iterator[str]:
    """Yield the names of the packages in a package.json."""
    read = json.loads(manifest)
    for kind in ("dependencies", "devDependencies", "optionalDependencies"):
        yield from read.get(kind, {})


def not_there(page: str, beside: Path) -> Iterator[str]:
    """Yield missing paths and tests in backticks, and missing link targets; `beside` is the page's directory."""
    for target in LINK.findall(page):
        if not (beside / target).exists():
            yield target
    for text in IN_BACKTICKS.findall(CODE_BLOCK.sub("", page)):
        path, _, test = text.partition("::")
        if not PATH.fullmatch(path) or not ("/" in path or path.endswith(ENDINGS)) or MADE.match(path):
            continue
        file = ROOT / path
        if not file.exists() or (test and f"def {test}(" not in file.read_text()):
            yield text


def not_inside(page: str) -> Iterator[str]:
    """Yield names in brackets after a module, as in `a/b.py` (`c`), that the module does not contain."""
    for path, brackets in IN_MODULE.findall(CODE_BLOCK.sub("", page)):
        source = (ROOT / path).read_text() if (ROOT / path).exists() else ""
        for name in IN_BACKTICKS.findall(brackets):
            if name.isidentifier() and not re.search(rf"\b{name}\b", source):
                yield f"{path}: {name}"


def anchors(page: str) -> frozenset[str]:
    """Return the anchors of a page's headings as GitHub makes them; a repeated name gets -1 and so on."""
    found: dict[str, int] = {}
    for heading in HEADING.findall(CODE_BLOCK.sub("", page)):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        found[name] = found.get(name, -1) + 1
    return frozenset(
        f"{name}-{number}" if number else name for name, most in found.items() for number in range(most + 1)
    )


@cache
def anchors_of(page: Path) -> frozenset[str]:
    """Return the anchors of a page in the repository."""
    return anchors(page.read_text())


def lost_references(text: str, beside: Path = DOCS) -> Iterator[str]:
    """Yield the references to documents and sections that the repository does not contain.

    A document is named from the root, from docs, or from `beside`, the folder of the text.
    """
    plain = ADDRESS.sub("", text)
    for name, anchor in PAGE_NAMED.findall(plain) if ".md" in plain else ():
        page = next((place for place in (ROOT / name, DOCS / name, beside / name) if place.is_file()), None)
        if page is None or (anchor and anchor not in anchors_of(page)):
            yield f"{name}#{anchor}" if anchor else name
    if named := WITHIN_PAGE.findall(plain):
        here = anchors(text)
        yield from (f"#{anchor}" for anchor in named if anchor not in here)
    yield from (found[0] for pattern in (SECTION_OF_NOTHING, ABSENT) for found in pattern.finditer(plain))


def referring() -> Iterator[Path]:
    """Yield every text file of the repository that may refer to a document."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    for name in listed:
        path = ROOT / name
        if not name.startswith(SAMPLES) and path.suffix in REFERRING and path.is_file():
            yield path


def unreached(start: str, pages: Mapping[str, str]) -> set[str]:
    """Return the paths of the pages that no chain of links from the page `start` reaches."""
    left, waiting = set(pages), [start]
    while waiting:
        path = waiting.pop()
        if path in left:
            left.remove(path)
            waiting += [normpath(PurePosixPath(path).parent / target) for target in LINK.findall(pages[path])]
    return left


def defaults() -> dict[str, Any]:
    """Return the default of every setting, by its name in the environment."""
    of_chains = {
        name: None
        for chain in CHAINS
        for name in (
            f"RPC_{chain.upper()}",
            *([f"RPC_WS_{chain.upper()}", f"FOLLOW_SECONDS_{chain.upper()}"] if chain in evm_chains() else []),
        )
    }
    return of_chains | {
        name.upper(): field.default for name, field in Settings.model_fields.items() if not field.exclude
    }


def test_every_setting_is_explained_with_its_default() -> None:
    page = (DOCS / "settings.md").read_text()
    assert list(missing(defaults(), page)) == []
    assert list(wrong_defaults(defaults(), page)) == []


def test_every_variable_that_a_program_reads_is_explained() -> None:
    read = re.compile(r'environ(?:\.get\(|\[)"([A-Z_]+)"')
    packages = ("app", "bot", "components", "gateways", "jobs", "models", "sandbox", "services", "state")
    files = [*ROOT.glob("*.py"), *(path for name in packages for path in (ROOT / name).rglob("*.py"))]
    found = {name for path in files for name in read.findall(path.read_text())}
    assert "WEB_CONCURRENCY" in found
    assert set(missing(found - OF_THE_MACHINE, (DOCS / "settings.md").read_text())) == set()


def test_the_example_of_an_env_file_names_settings_only() -> None:
    named = re.findall(r"^(?:# )?([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.M)
    assert named
    assert set(named) - defaults().keys() == set()


@pytest.mark.parametrize("name", ["requirements.in", "requirements-dev.in"])
def test_every_requirement_has_its_reason(name: str) -> None:
    wanted = list(requirements((ROOT / name).read_text()))
    assert wanted
    assert list(missing(wanted, (DOCS / "architecture" / "dependencies.md").read_text())) == []


@pytest.mark.parametrize(
    "name", ["reflex.lock/package.json", "sandbox/npm/package.json", "tests/support/npm/package.json"]
)
def test_every_npm_package_has_its_reason(name: str) -> None:
    wanted = list(npm_packages((ROOT / name).read_text()))
    assert wanted
    assert list(missing(wanted, (DOCS / "architecture" / "dependencies.md").read_text())) == []


# The page of modules repeats docstrings, which name the modules beside them without their folder.
@pytest.mark.parametrize("page", [page for page in PAGES if page != module_index.PAGE], ids=name_of)
def test_what_a_page_names_exists(page: Path) -> None:
    assert list(not_there(page.read_text(), page.parent)) == []
    assert list(not_inside(page.read_text())) == []


def test_a_name_that_its_module_does_not_have_is_noticed() -> None:
    assert list(not_inside("`tests/house/pages.py` (`PAGES`, `name_of`) and `settings.py` (`settings`, twice)")) == []
    assert list(not_inside("`tests/house/pages.py` (`PAGES`; `nowhere`)")) == ["tests/house/pages.py: nowhere"]


def test_the_page_of_modules_has_the_first_line_of_each() -> None:
    sources = [(path, (ROOT / path).read_text()) for path in module_index.modules()]
    assert [path for path, source in sources if not module_index.first_line(source)] == []
    assert module_index.PAGE.read_text() == module_index.page(sources), "Run python -m tools.module_index"


def test_the_page_of_modules_lists_them_by_folder() -> None:
    sources = [
        ("a.py", '"""The root\'s."""'), ("b/__init__.py", '"""What `b` is for."""'),
        ("b/one.py", '"""The first line,\nwhich goes on.\n\nMore.\n"""'), ("b/c/two.py", '"""Deeper."""'),
    ]  # fmt: skip
    assert module_index.page(sources).removeprefix(module_index.HEAD).split("\n") == [
        "", "## The root", "", "- [`a.py`](../../a.py): The root's.", "",
        "## `b`", "", "What `b` is for.", "", "- [`one.py`](../../b/one.py): The first line, which goes on.", "",
        "## `b/c`", "", "- [`two.py`](../../b/c/two.py): Deeper.", "", "",
    ]  # fmt: skip


def test_links_lead_from_the_readme_to_every_page() -> None:
    # GitHub shows the files in .github itself.
    read = {name_of(page): page.read_text() for page in PAGES if page.parent.name != ".github"}
    assert len(read) > 10
    assert sorted(unreached(name_of(README), read)) == []


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("`app/nowhere.py`", ["app/nowhere.py"]),
        ("`nowhere.md` and `services/nowhere/`", ["nowhere.md", "services/nowhere/"]),
        ("`tests/house/test_docs.py::test_nowhere`", ["tests/house/test_docs.py::test_nowhere"]),
        ("[a](nowhere.md) ![b](pictures/nowhere.png)", ["nowhere.md", "pictures/nowhere.png"]),
        ("`settings.py` `app/` `/api/servers` `data/live` `.env` `python -m app` `@react-router/dev`", []),
        ("[a](settings.md#names) [b](https://a.example/x) `tests/house/rules.py`", []),
        ("```sh\nexport `app/nowhere.py`\n```", []),
    ],
)
def test_a_path_that_does_not_exist_is_noticed(page: str, found: list[str]) -> None:
    assert list(not_there(page, DOCS)) == found


def test_every_reference_leads_to_a_document_of_the_repository() -> None:
    files = list(referring())
    assert DOCS / "facts.md" in files
    lost = {name_of(path): list(lost_references(path.read_text(), path.parent)) for path in files}
    assert {name: names for name, names in lost.items() if names} == {}


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("see docs/nowhere.md and nowhere.md", ["docs/nowhere.md", "nowhere.md"]),
        ("(docs/facts.md#nowhere)", ["docs/facts.md#nowhere"]),
        ("[a](settings.md#nowhere) [b](#nowhere)", ["settings.md#nowhere", "#nowhere"]),
        ("a code (§1.6) and the specification §9", ["§1.6", "§9"]),
        ("(external-apis 4.1), external facts, facts/one.json", ["external-apis", "external facts", "facts/one"]),
        ("(design, section 7)", ["design, section"]),
        ("docs/facts.md#discord-error-codes, settings.md#discord, RFC 8878 §3.1.1, RFC 6265bis §4.1.3", []),
        ("--- a/docs/nowhere.md\n+++ b/docs/nowhere.md\n", []),
        ("# Here\n[a](#here) <https://a.example/nowhere.md#x> README.md", []),
    ],
)
def test_a_reference_that_leads_nowhere_is_noticed(text: str, lost: list[str]) -> None:
    assert list(lost_references(text)) == lost


def test_a_reference_may_be_named_from_the_folder_of_its_text() -> None:
    text = "[a](../settings.md) [b](0004-embedded-postgresql.md)"
    assert list(lost_references(text, DOCS / "decisions")) == []
    assert list(lost_references(text)) == ["../settings.md", "0004-embedded-postgresql.md"]


def test_anchors_are_those_that_github_makes() -> None:
    page = "# The house\n## Discord: error codes\n## `eth_getLogs`, twice\n## The house\n```\n# no heading\n```\n"
    assert anchors(page) == {"the-house", "discord-error-codes", "eth_getlogs-twice", "the-house-1"}


def test_a_page_without_a_way_to_it_is_noticed() -> None:
    pages = {"a.md": "[b](docs/b.md)", "docs/b.md": "[a](../a.md) [c](c.md#part)", "docs/c.md": "", "d.md": "[a](a.md)"}
    assert unreached("a.md", pages) == {"d.md"}


def test_what_is_left_out_or_wrong_is_noticed() -> None:
    assert list(missing(["PORT", "NEW_ONE"], "| `PORT` | `3000` |")) == ["NEW_ONE"]
    assert list(wrong_defaults({"PORT": 3000}, "| `PORT` | `3001` | all |")) == ["PORT: `3001` instead of `3000`"]
    assert list(requirements("# words\n-r other.in\npytest[x]>=2\neth-utils\n")) == ["pytest", "eth-utils"]


def test_each_table_has_a_row_on_the_page_of_the_house() -> None:
    """A reader finds the purpose of each table there."""
    page = (DOCS / "architecture" / "README.md").read_text().partition("## The tables")[2]
    assert list(missing(sorted(SQLModel.metadata.tables), page)) == []


def test_each_job_has_a_row_on_the_page_of_the_processes() -> None:
    page = (DOCS / "architecture" / "processes.md").read_text().partition("## The jobs")[2]
    assert list(missing([job.name for job in all_jobs()], page)) == []


def test_each_benchmark_has_a_row_on_the_page_about_performance() -> None:
    started = (ROOT / "benchmarks" / "__main__.py").read_text()
    imported = re.findall(r"^from (benchmarks[.\w]*) import (.+)$", started, re.M)
    paths = {f"{package.replace('.', '/')}/{name}.py" for package, names in imported for name in names.split(", ")}
    run = set(re.findall(r'"\w+": (\w+)\.main', started))
    rows = re.findall(r"^\| `(benchmarks/[\w/]+\.py)` \|", (DOCS / "performance.md").read_text(), re.M)
    assert sorted(rows) == sorted(path for path in paths if Path(path).stem in run)
