"""The compose files' promises: no privileges, limits, names for the build, and ports open only to this machine."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from app.build import BAKED_SETTINGS
from tests.deploy.files import yaml_of
from tests.house.pages import ROOT

FILES = [ROOT / "compose.yaml", ROOT / "deploy" / "compose.scale.yaml"]
SERVICES = [(path.name, name, service) for path in FILES for name, service in yaml_of(path)["services"].items()]


@pytest.mark.parametrize(("file", "name", "service"), SERVICES, ids=[f"{one[0]}-{one[1]}" for one in SERVICES])
def test_a_container_has_no_rights_that_it_does_not_need(file: str, name: str, service: dict[str, Any]) -> None:
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["mem_limit"]
    assert not service.get("privileged")
    # PostgreSQL's image starts as root, gives its volume to its own account and writes its socket to /var/run.
    assert name == "postgres" or (service["read_only"] is True and "cap_add" not in service)
    for port in service.get("ports", []):
        assert port.startswith("127.0.0.1:")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_is_written_into_the_screens_is_handed_to_the_build(path: Path) -> None:
    built = [one["build"] for one in yaml_of(path)["services"].values() if "build" in one]
    names = {name.upper() for name in BAKED_SETTINGS if name != "sandbox"} | {"CHAINS_FILE"}
    assert built
    for build in built:
        assert (path.parent / build["context"] / build["dockerfile"]).is_file()
        assert set(build["args"]) == names | {"PYTHON_IMAGE"}
        assert all(value.startswith(f"${{{name}:-") for name, value in build["args"].items())


def test_redis_asks_for_a_password_that_no_list_of_processes_shows(tmp_path: Path) -> None:
    services = yaml_of(FILES[1])["services"]
    assert "ports" not in services["redis"]
    assert "ports" not in services["postgres"]
    started = tmp_path / "redis-server"
    started.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > arguments\ncat > configuration\n')
    started.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "REDIS_PASSWORD": "Secret4Redis"}
    command = [word.replace("$$", "$") for word in services["redis"]["command"]]  # as compose reads it
    subprocess.run(command, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, check=True)
    assert "requirepass Secret4Redis" in (tmp_path / "configuration").read_text().splitlines()
    given = (tmp_path / "arguments").read_text().split("\n")
    assert given[0] == "-", "Redis reads the configuration from its input"
    assert "Secret4Redis" not in given


def test_postgresql_takes_the_connections_of_all_processes() -> None:
    """Two web workers, a bot and two jobs, as the file's head starts them; each pool holds up to 40, and a few wait."""
    services = yaml_of(FILES[1])["services"]
    workers = int(services["web"]["environment"]["WEB_CONCURRENCY"])
    assert int(services["postgres"]["command"][-1].removeprefix("max_connections=")) >= 45 * (workers + 1 + 2)


@pytest.mark.parametrize(("file", "name", "service"), SERVICES, ids=[f"{one[0]}-{one[1]}" for one in SERVICES])
def test_a_container_keeps_its_data_where_it_can_write_whatever_the_env_file_says(
    file: str, name: str, service: dict[str, Any]
) -> None:
    if "env_file" not in service:
        return
    volumes = [one.partition(":")[2] for one in service.get("volumes", [])]
    assert service["environment"]["DATA_DIR"] in [*service["tmpfs"], *volumes]
