"""Getting the EVM node from npm: the error message when npm cannot get it."""

import os
import sys
from pathlib import Path

import pytest

from sandbox import tools
from sandbox.tools import ToolMissing, ensure, obtain
from tests.conftest import free_port


def test_a_registry_that_cannot_be_reached_is_named_as_the_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = f"http://127.0.0.1:{free_port()}/"
    for name in ("ANVIL", "npm_config_registry"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", registry)
    monkeypatch.setenv("NPM_CONFIG_FETCH_RETRIES", "0")
    monkeypatch.setenv("NPM_CONFIG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tools.shutil, "which", lambda _: None)
    beside = Path(sys.executable).with_name("npm")
    with pytest.raises(ToolMissing) as told:
        ensure(tmp_path / "tools", [str(beside) if beside.exists() else "npm"], lambda _: None)
    assert registry in str(told.value)
    assert "ECONNREFUSED" in str(told.value)
    assert not (tmp_path / "tools" / ".installed").exists()


def test_a_node_of_ones_own_needs_no_npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANVIL", str(tmp_path / "anvil"))
    assert ensure(tmp_path, [os.devnull], lambda _: None) == tmp_path / "anvil"


def test_an_npm_that_fails_is_said_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text("#!/bin/sh\nexit 1\n")
    npm.chmod(0o755)
    monkeypatch.delenv("ANVIL", raising=False)
    monkeypatch.setenv("PATH", str(npm.parent))
    monkeypatch.setattr(sys, "executable", str(npm.with_name("python")))
    with pytest.raises(ToolMissing, match=r"python -m sandbox\.tools"):
        obtain(tmp_path / "tools", lambda _: None)
