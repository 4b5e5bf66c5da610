"""`reflex run` in a copy of the repository: it serves, people sign in, and Ctrl+C leaves nothing behind."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from app.build import ensure_built
from sandbox.tools import find_anvil
from tests.conftest import ROOT, free_port, wait_for
from tests.support.product import Product, kill_session, members_of_session
from tests.system.whole.people import Person
from tests.system.whole.test_moved import NOT_CLONED, OF_A_FOLDER

START_SECONDS = 240
STOP_SECONDS = 60
UNCLEAN = re.compile(r"Traceback|panicked|ClientOSError|Unclosed|Unexpected exit|did not end within")
# With hot reload Reflex gives its worker two seconds, however busy the machine is.
KILLED = re.compile(r"Killing worker")


@pytest.fixture
def clone(short_dir: Path) -> Path:
    """A copy of the tree with the screens as they are built here.

    Their packages are copied too: npm does not accept a link to them, and would download all of them again.
    """
    ensure_built(lambda _: None)
    folder = short_dir / "clone"
    shutil.copytree(ROOT, folder, ignore=NOT_CLONED)
    # Twelve thousand files, for which a copy by Python takes more processor time.
    (folder / ".web").mkdir()
    subprocess.run(["cp", "-Rp", f"{ROOT / '.web'}/.", folder / ".web"], check=True)
    folder.chmod(0o755)
    return folder


def free(port: int) -> bool:
    """Return whether a process could listen on the port on every address."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


@pytest.mark.parametrize("options", [(), ("--env", "prod")], ids=["plain", "prod"])
def test_it_serves_until_ctrl_c_and_leaves_nothing_behind(clone: Path, options: tuple[str, ...]) -> None:
    port, sandbox_port = free_port(), free_port()
    anvil = find_anvil(ROOT / "data" / "tools")
    assert anvil is not None
    environment = {name: value for name, value in os.environ.items() if name not in OF_A_FOLDER} | {
        "PORT": str(port), "SANDBOX_PORT": str(sandbox_port), "ANVIL": str(anvil),
    }  # fmt: skip
    environment.pop("HOLDFAST_SUPERVISED", None)
    log = clone.with_name("run.log")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [Path(sys.executable).with_name("reflex"), "run", *options],
            cwd=clone, env=environment, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    try:
        product = Product(f"http://localhost:{port}", f"http://localhost:{sandbox_port}", clone / "data")
        wait_for(f"{product.url}/health", process, log, START_SECONDS)
        landing = httpx.get(product.url, timeout=60)
        assert landing.status_code == 200
        assert "<html" in landing.text
        with closing(Person(product, "ada")) as ada:
            assert ada.get("/api/servers")
        for one in (port, sandbox_port):
            with pytest.raises(httpx.ConnectError):  # another address of this machine, as other machines reach it
                httpx.get(f"http://127.0.0.2:{one}/health", headers={"Host": f"localhost:{one}"})
        os.killpg(process.pid, signal.SIGINT)
        process.wait(STOP_SECONDS)
        left = members_of_session(process.pid)
    finally:
        kill_session(process.pid)
        process.wait()
    said = log.read_text(errors="replace")
    assert UNCLEAN.search(said) is None, said[-4000:]
    assert KILLED.search(said) is None or not options, said[-4000:]
    assert process.returncode == 0, said[-4000:]
    assert left == []
    assert free(port)
    assert free(sandbox_port)
