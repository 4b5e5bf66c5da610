"""The compose files' promises: no privileges, limits, names for the build, and ports open only to this machine."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from redis.connection import parse_url

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


def redis_with(password: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run the command of the service Redis, with a program in Redis' place that notes what it is given."""
    started = folder / "redis-server"
    started.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > arguments\ncat > configuration\n')
    started.chmod(0o755)
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "REDIS_PASSWORD": password}
    # As compose reads it.
    command = [word.replace("$$", "$") for word in yaml_of(FILES[1])["services"]["redis"]["command"]]
    return subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("password", ["Secret4Redis", "a$b`c\\d", "x+y=z_-.~:@!", "pässwort"])
def test_redis_asks_for_a_password_that_no_list_of_processes_shows(password: str, tmp_path: Path) -> None:
    services = yaml_of(FILES[1])["services"]
    assert "ports" not in services["redis"]
    assert "ports" not in services["postgres"]
    assert redis_with(password, tmp_path).returncode == 0
    assert f"requirepass {password}" in (tmp_path / "configuration").read_text().splitlines()
    given = (tmp_path / "arguments").read_text().split("\n")
    assert given[0] == "-", "Redis reads the configuration from its input"
    assert password not in given
    address = services["web"]["environment"]["REDIS_URL"].replace("${REDIS_PASSWORD:?set it in .env}", password)
    assert parse_url(address)["password"] == password, "the web sends the same one"


@pytest.mark.parametrize(
    "password", ["two words", 'a"b', "a'b", "a/b", "a?b", "a#b", "a%41b", "a[b", "a]b", "a\tb", "a\nport 1", "line\n"]
)
def test_a_password_that_redis_or_an_address_reads_otherwise_is_refused_in_a_sentence(
    password: str, tmp_path: Path
) -> None:
    done = redis_with(password, tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("REDIS_PASSWORD has a blank, a quote or one of / ? # % [ ], ")
    assert not (tmp_path / "configuration").exists()


def test_every_password_of_postgresql_is_the_same_for_all_because_no_address_has_it() -> None:
    services = yaml_of(FILES[1])["services"]
    given = services.pop("postgres")["environment"]["POSTGRES_PASSWORD"]
    using = [one["environment"] for one in services.values() if "DATABASE_URL" in one["environment"]]
    assert len(using) == 4
    assert all("$" not in one["DATABASE_URL"] and one["PGPASSWORD"] == given for one in using)


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
