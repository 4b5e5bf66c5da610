"""Every file for GitHub, Docker and Python's packagers is valid by its published schema.

check-jsonschema brings the schemas: compose files' is the Compose specification's, the others are SchemaStore's (both
under the Apache license 2.0). validate-pyproject (MPL 2.0) brings the one of pyproject.toml.
"""

import subprocess
import tomllib
from pathlib import Path

import pytest
from check_jsonschema import main
from click.testing import CliRunner
from validate_pyproject.api import Validator
from validate_pyproject.errors import ValidationError

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


NO_SCHEMA = {
    "deploy/monitoring/alerts.yaml": "tests/deploy/test_monitoring.py, promtool",
    "deploy/monitoring/alerts.test.yaml": "promtool, in .github/workflows/checks.yml",
    "deploy/monitoring/grafana.json": "tests/deploy/test_monitoring.py, by Grafana's own types",
    ".pre-commit-config.yaml": "tests/house/test_contributor_files.py",
    "gateways/chains/chains.toml": "gateways/chains/chain_file.py, which refuses unknown fields",
    "sandbox/base/chains.toml": "tests/sandbox",
    "services/rules/documents/rules.schema.json": "the metaschema, below",
    # Made by npm or by a compiler.
    **dict.fromkeys(
        (
            "benchmarks/peers/npm/package.json", "reflex.lock/package.json", "sandbox/npm/package.json",
            "tests/support/npm/package.json", "benchmarks/peers/npm/package-lock.json",
            "reflex.lock/package-lock.json", "sandbox/npm/package-lock.json", "tests/support/npm/package-lock.json",
        ),
        "npm ci",
    ),
    "gateways/evm/programs/bytecode.json": "tests/gateways/evm",
    "sandbox/contracts/artefacts.json": "tests/sandbox",
    "tests/sandbox/chains/das_asset.json": "the test beside it",
}  # fmt: skip
"""The program that reads or checks each file for which we have no published schema."""
PROJECTS = ("pyproject.toml", "clients/python/pyproject.toml")


def test_every_yaml_toml_and_json_file_has_a_schema_or_another_check() -> None:
    endings = ("*.yml", "*.yaml", "*.toml", "*.json")
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *endings]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    patterns = [pattern for patterns in SCHEMAS.values() for pattern in patterns]
    known = {str(path.relative_to(ROOT)) for pattern in patterns for path in ROOT.glob(pattern)}
    assert set(listed.stdout.split()) == known | {*NO_SCHEMA, *PROJECTS}


@pytest.mark.parametrize("file", PROJECTS)
def test_pyproject_is_valid_by_the_packagers_schemas(file: str, tmp_path: Path) -> None:
    assert by_the_packagers(ROOT / file)
    wrong = tmp_path / "pyproject.toml"
    wrong.write_text((ROOT / file).read_text().replace("[project]", "[project]\nnobody-knows-this = 1", 1))
    assert not by_the_packagers(wrong)


def by_the_packagers(path: Path) -> bool:
    """Return whether the packagers' schema, with those of the tools that it knows, accepts all of a pyproject.toml."""
    try:
        Validator()(tomllib.loads(path.read_text()))
    except ValidationError:
        return False
    return True


def test_the_schema_of_exported_rules_is_a_schema() -> None:
    path = ROOT / "services" / "rules" / "documents" / "rules.schema.json"
    assert CliRunner().invoke(main, ["--check-metaschema", str(path)]).exit_code == 0
