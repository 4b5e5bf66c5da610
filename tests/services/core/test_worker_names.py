"""Worker names: they show that a process of this machine has ended, but never that one of another machine has."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from services.core.queue import worker_names
from services.core.queue.worker_names import is_dead, machine, worker_name


def ended() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_process_that_has_ended_is_dead_and_a_running_one_is_not() -> None:
    assert is_dead(f"{machine()}:{ended()}:0f")
    assert not is_dead(f"{machine()}:{os.getppid()}:0f")
    assert is_dead(f"{machine()}:{os.getpid()}:0f"), "it had the number of this process before"


def test_every_worker_of_this_process_is_alive_and_has_a_name_of_its_own() -> None:
    one, other = worker_name(), worker_name()
    assert one != other
    assert not is_dead(one)
    assert not is_dead(other)


def test_a_process_of_another_machine_is_never_dead() -> None:
    for name in (f"elsewhere:{ended()}:0f", f"{socket.gethostname()}:{ended()}:0f", "x", "", f"{machine()}:x:0f"):
        assert not is_dead(name), name


def test_machines_of_one_host_name_are_not_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names = set[str]()
    for boot in ("one", "other"):
        (tmp_path / "boot_id").write_text(boot)
        monkeypatch.setattr(worker_names, "_PLACES", (tmp_path / "boot_id", tmp_path / "absent"))
        machine.cache_clear()
        names.add(machine())
    machine.cache_clear()
    assert len(names) == 2
