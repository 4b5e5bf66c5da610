"""Every file of GitHub's, of Docker's and of Python's packagers is valid by the schema that is published for it."""

import subprocess
import sys
from pathlib import Path

import pytest
from check_jsonschema import main
from click.testing import CliRunner

from tests.house.pages import ROOT

SCHEMAS = {
    "compose-spec": ("compose.yaml", "deploy/compose*.yaml"),
    "github-workflows": (".github/workflows/*.yml",),
    "dependabot": (".github/dependabot.yml",),
    "github-issue-forms": (".github/ISSUE_TEMPLATE/[!c]*.yml",),
    "github-issue-config": (".github/ISSUE_TEMPLATE/config.yml",),
}


def valid(schema: str, *files: Path) -> bool:
    """Return whether all files are valid by a schema that comes with check-jsonschema."""
    return CliRunner().invoke(main, ["--builtin-schema", f"vendor.{schema}", *map(str, files)]).exit_code == 0


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_file_is_valid_by_its_schema(schema: str, tmp_path: Path) -> None:
    files = [path for pattern in SCHEMAS[schema] for path in sorted(ROOT.glob(pattern))]
    assert files
    assert valid(schema, *files)
    wrong = tmp_path / files[0].name
    wrong.write_text(files[0].read_text() + "\nnobody_knows_this: [1]\n")
    assert not valid(schema, wrong)


def test_every_yaml_file_has_a_schema_or_a_test_of_its_own() -> None:
    own = {
        "deploy/monitoring/alerts.yaml",  # tests/deploy/test_monitoring.py
        "deploy/monitoring/alerts.test.yaml",  # promtool, in .github/workflows/checks.yml
        ".pre-commit-config.yaml",  # tests/house
    }
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.yml", "*.yaml"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    patterns = [pattern for patterns in SCHEMAS.values() for pattern in patterns]
    known = {str(path.relative_to(ROOT)) for pattern in patterns for path in ROOT.glob(pattern)}
    assert set(listed.stdout.split()) - known == own


def test_pyproject_is_valid_by_the_packagers_schemas() -> None:
    checker = [sys.executable, "-m", "validate_pyproject", str(ROOT / "pyproject.toml")]
    done = subprocess.run(checker, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
