"""The workflows run commands that exist, on all promised Python versions, with pinned actions and few permissions."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.files import yaml_of
from tests.house.pages import ROOT
from tests.house.test_commands import cannot_be_typed

WORKFLOWS = {path.name: yaml_of(path) for path in sorted((ROOT / ".github" / "workflows").iterdir())}
JOBS = [(f"{file}-{name}", job) for file, workflow in WORKFLOWS.items() for name, job in workflow["jobs"].items()]
STEPS = [(name, step) for name, job in JOBS for step in job.get("steps", [])]
MAY_WRITE = {
    "codeql.yml-analyze": {"security-events"},
    "release.yml-images": {"packages"},
    "release.yml-publish": {"packages", "contents"},
}


def test_a_workflow_may_read_and_no_more() -> None:
    assert len(WORKFLOWS) > 3
    assert [name for name, workflow in WORKFLOWS.items() if workflow["permissions"] != {"contents": "read"}] == []


@pytest.mark.parametrize(("name", "job"), JOBS, ids=[name for name, _ in JOBS])
def test_a_job_may_write_only_what_it_is_for(name: str, job: dict[str, Any]) -> None:
    given = {right for right, kind in job.get("permissions", {}).items() if kind != "read"}
    assert given == MAY_WRITE.get(name, set())
    assert "uses" in job or 0 < job["timeout-minutes"] <= 90


def test_every_action_is_pinned_by_its_commit_and_keeps_no_token() -> None:
    used = [step for _, step in STEPS if "uses" in step]
    assert used
    for step in used:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step["uses"])
        assert not step["uses"].startswith("actions/checkout@") or step["with"]["persist-credentials"] is False


def test_what_a_workflow_runs_exists() -> None:
    lines = [line.strip() for _, step in STEPS for line in step.get("run", "").splitlines()]
    assert [wrong for line in lines for wrong in cannot_be_typed(line.removeprefix("sudo "))] == []
    named = [path for line in lines for path in re.findall(r"(?<![\w./])(?:deploy|tests|tools)/[\w./-]+", line)]
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_no_text_from_outside_is_put_into_a_command() -> None:
    assert [step["run"] for _, step in STEPS if "${{" in step.get("run", "")] == []


def test_the_tests_run_on_every_python_that_is_promised() -> None:
    assert WORKFLOWS["checks.yml"]["jobs"]["tests"]["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13", "3.14"]


def test_the_image_is_built_for_both_architectures() -> None:
    for file in ("image_trial.yml", "release.yml"):
        jobs = [job for job in WORKFLOWS[file]["jobs"].values() if "matrix" in job.get("strategy", {})]
        for job in jobs:
            assert {one["arch"] for one in job["strategy"]["matrix"]["include"]} == {"amd64", "arm64"}
    docker = (ROOT / "deploy" / "Dockerfile").read_text()
    assert f"ARG PYTHON_IMAGE={WORKFLOWS['release.yml']['jobs']['images']['env']['PYTHON_IMAGE']}\n" in docker


def test_dependencies_are_watched_wherever_they_are_named() -> None:
    updates = yaml_of(ROOT / ".github" / "dependabot.yml")["updates"]
    for one in updates:
        assert (ROOT / Path(one["directory"].lstrip("/"))).is_dir()
    assert {one["package-ecosystem"] for one in updates} == {"pip", "npm", "docker", "github-actions"}


def test_the_latest_image_changes_only_after_all_of_a_release_is_published() -> None:
    runs = [step.get("run", "") for step in WORKFLOWS["release.yml"]["jobs"]["publish"]["steps"]]
    assert [place for place, run in enumerate(runs) if ":latest" in run] == [len(runs) - 1]
