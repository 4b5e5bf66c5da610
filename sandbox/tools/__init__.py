"""The parts of the sandbox that come from npm: the EVM node, pinned by sandbox/npm. Standard library only."""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

PACKAGES = Path(__file__).parents[1] / "npm"
# Where this repository's set-up installs them.
USUAL_TOOLS = Path(__file__).parents[2] / "data" / "tools"
# The lock file has the platform that we test on; on others npm resolves the same version of that platform's package.
ANVIL_VERSION = "1.7.1"
_PLATFORMS = {
    ("linux", "x86_64"): "linux-amd64",
    ("linux", "aarch64"): "linux-arm64",
    ("darwin", "arm64"): "darwin-arm64",
    ("darwin", "x86_64"): "darwin-amd64",
}


class ToolMissing(Exception):
    """The EVM node is not on this machine; the message says how to get it."""


def find_anvil(*tools_dirs: Path) -> Path | None:
    """Return `$ANVIL`, else what `ensure` installed below one of `tools_dirs`, else `anvil` on the PATH, else None."""
    named = os.environ.get("ANVIL")
    if named:
        return Path(named)
    for tools_dir in tools_dirs:
        installed = tools_dir / "node_modules" / "@foundry-rs" / f"anvil-{_platform()}" / "bin" / "anvil"
        if installed.is_file():
            return installed
    found = shutil.which("anvil")
    return Path(found) if found else None


def ensure(tools_dir: Path, npm: Sequence[str], say: Callable[[str], None]) -> Path:
    """Install the pinned npm parts into `tools_dir` unless they are there, and return the path of the EVM node.

    `npm` is the command that runs npm, for example `[".venv/bin/npm"]`. Raises ToolMissing when the node is not there
    afterwards, and CalledProcessError when npm fails.
    """
    if os.environ.get("ANVIL"):
        return Path(os.environ["ANVIL"])
    stamp = tools_dir / ".installed"
    wanted = hashlib.sha256((PACKAGES / "package-lock.json").read_bytes()).hexdigest()
    present = find_anvil(tools_dir)
    if present and stamp.is_file() and stamp.read_text() == wanted:
        return present
    tools_dir.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copyfile(PACKAGES / name, tools_dir / name)
    say("installing the EVM node (anvil) with npm")
    # npm is a script that looks for `node` on the PATH; the wheel puts both into one folder.
    own = str(Path(npm[0]).resolve().parent)
    environment = {**os.environ, "PATH": os.pathsep.join((own, os.environ.get("PATH", "")))}

    # Retry a registry that does not answer only once, not for minutes.
    environment.setdefault("NPM_CONFIG_FETCH_RETRIES", "1")
    subprocess.run([*npm, "ci", "--omit=dev"], cwd=tools_dir, env=environment, check=True, stdout=sys.stderr)
    found = find_anvil(tools_dir)
    if found is None:
        # The lock file is for another platform, or npm could not fetch the package, which it hides for an optional one.
        _install(npm, tools_dir, environment)
        found = find_anvil(tools_dir)
    if found is None:
        raise ToolMissing(f"npm installed no EVM node for {_platform()}. Name one with the variable ANVIL.")
    stamp.write_text(wanted)
    return found


def obtain(tools_dir: Path, say: Callable[[str], None]) -> Path:
    """Call `ensure` with the npm beside this Python, or else the machine's. Raises ToolMissing for every failure."""
    beside = Path(sys.executable).with_name("npm")
    try:
        return ensure(tools_dir, [str(beside) if beside.exists() else "npm"], say)
    except (OSError, subprocess.CalledProcessError) as fault:
        raise ToolMissing(
            f"There is no EVM node, and npm could not install one ({fault}). "
            "Try `python -m sandbox.tools`, or name a node that is here with the variable ANVIL."
        ) from fault


def _install(npm: Sequence[str], tools_dir: Path, environment: Mapping[str, str]) -> None:
    """Install this platform's EVM node by name; raises ToolMissing with npm's own words when that fails."""
    package = f"@foundry-rs/anvil-{_platform()}@{ANVIL_VERSION}"
    done = subprocess.run(
        [*npm, "install", "--no-save", "--no-package-lock", package],
        cwd=tools_dir, env=environment, check=False, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode != 0:
        said = [line.removeprefix("npm error ").strip() for line in done.stderr.splitlines() if "npm error" in line]
        reason = "; ".join(line for line in said[:4] if line and "complete log" not in line) or done.stderr.strip()
        registry = subprocess.run(
            [*npm, "config", "get", "registry"],
            cwd=tools_dir, env=environment, check=False, capture_output=True, text=True,
        ).stdout.strip()  # fmt: skip
        raise ToolMissing(
            f"npm could not get the EVM node ({package}) from {registry}: {reason}. "
            "Check the network and npm's registry, or name a node that is here with the variable ANVIL."
        )


def _platform() -> str:
    machine = platform.machine()
    return _PLATFORMS.get((sys.platform, machine), f"{sys.platform}-{machine}")
