"""Files for contributors: hooks that exist, issue forms that GitHub can read, and no marks of a conflict."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateways.chains.catalogue import CHAINS
from tests.house.pages import ROOT

HOOKS = (ROOT / ".pre-commit-config.yaml").read_text()
FORMS = sorted(path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
KINDS = frozenset({"markdown", "input", "textarea", "dropdown", "checkboxes"})


def form_faults(form: str) -> Iterator[str]:
    """Yield the faults for which GitHub would refuse an issue form."""
    yield from (f"no {key}" for key in ("name", "description", "body") if not re.search(rf"^{key}:", form, re.M))
    parts = re.split(r"^  - type: ", form, flags=re.M)[1:]
    yield from (f"no such kind: {kind}" for part in parts if (kind := part.split()[0]) not in KINDS)
    ids: list[str] = re.findall(r"^    id: (\S+)$", form, re.M)
    yield from (f"{one} twice" for one in sorted({one for one in ids if ids.count(one) > 1}))
    asking = [part for part in parts if not part.startswith("markdown")]
    named = [part for part in asking if "    id: " in part and "  label: " in part]
    yield from ("a question without id or label" for _ in range(len(asking) - len(named)))
    # YAML reads these as true and false, but GitHub expects strings.
    yield from (f"{one} is not text" for one in re.findall(r"^ +- (yes|no|on|off|true|false)$", form, re.M | re.I))


def hooks(config: str) -> dict[str, list[str]]:
    """Return the command of each hook by its id."""
    found: list[tuple[str, str]] = re.findall(r"^ +- id: (\S+)\n(?: +name: .*\n)? +entry: (.+)$", config, re.M)
    return {hook: shlex.split(command) for hook, command in found}


def test_the_hooks_check_style_as_make_check_does() -> None:
    steps, found = (ROOT / "tools" / "steps.py").read_text(), hooks(HOOKS)
    for hook, words in {"ruff-check": ["check"], "ruff-format": ["format", "--check"]}.items():
        assert found[hook] == [".venv/bin/ruff", *words, "--force-exclude"]
        assert '"ruff", ' + ", ".join(f'"{word}"' for word in words) in steps


def test_the_subject_of_a_commit_is_checked_by_a_script_that_is_there() -> None:
    python, script = hooks(HOOKS)["commit-subject"]
    assert python == "python3"
    assert (ROOT / script).is_file()


def test_no_hook_is_fetched_and_each_kind_is_installed() -> None:
    assert set(re.findall(r"^ +- repo: (.+)$", HOOKS, re.M)) == {"local"}
    (installed,) = re.findall(r"^default_install_hook_types: \[(.+)\]$", HOOKS, re.M)
    assert set(re.findall(r"^ +stages: \[(.+)\]$", HOOKS, re.M)) == set(installed.split(", "))


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_is_one_that_github_takes(path: Path) -> None:
    assert list(form_faults(path.read_text())) == []


def test_the_forms_are_there() -> None:
    assert {path.stem for path in FORMS} >= {"bug", "feature", "provider_problem"}


def test_the_form_about_a_provider_offers_each_chain() -> None:
    form = (ROOT / ".github" / "ISSUE_TEMPLATE" / "provider_problem.yml").read_text()
    _, offered = form.split("label: Which chain?")
    chains = re.findall(r"^        - (.+)$", offered.split("validations:")[0], re.M)
    assert chains == ["None", *(chain.title for chain in CHAINS.values()), "Several"]


def test_what_github_would_refuse_is_noticed() -> None:
    assert list(form_faults("name: Bug\n")) == ["no description", "no body"]
    part = "  - type: {}\n    id: a\n    attributes:\n      label: A\n"
    body = part.format("input") + part.format("textfield") + "  - type: input\n      options:\n        - No\n"
    assert list(form_faults(f"name: Bug\ndescription: x\nbody:\n{body}")) == [
        "no such kind: textfield", "a twice", "a question without id or label", "No is not text",
    ]  # fmt: skip


def test_a_hook_is_read_with_and_without_a_name() -> None:
    first, second = "      - id: a\n        name: A\n        entry: x y\n", "      - id: b\n        entry: z\n"
    assert hooks(first + second) == {"a": ["x", "y"], "b": ["z"]}


def test_no_file_has_both_sides_of_a_conflict() -> None:
    marks = ["git", "grep", "--untracked", "-n", "-I", "-E", "^(<{7}|>{7})( |$)"]
    found = subprocess.run(marks, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (1, ""), found.stderr
