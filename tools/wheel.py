"""Make a wheel with the built screens inside: `make wheel`. It runs live, without node and without a build."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from tools import bundle
from tools.install import NODE, read_pins
from tools.steps import PYTHON

ROOT = Path(__file__).resolve().parents[1]
MADE = ROOT / "data" / "wheels"


def pins() -> list[str]:
    """Return the wheel's dependencies: the product's pins, without node, which only a build needs."""
    return sorted(pin for pin in read_pins(ROOT / "requirements.txt") if not pin.startswith(NODE))


def project(version: str, dependencies: list[str]) -> str:
    """Return the wheel's own pyproject.toml."""
    return f"""\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "holdfast"
version = "{version}"
description = "Discord roles for the people who hold your NFTs"
requires-python = ">=3.11"
license = "MIT"
license-files = ["LICENSE"]
dependencies = {json.dumps(dependencies, indent=4)}

[project.scripts]
holdfast = "holdfast.__main__:main"

[tool.setuptools]
packages = ["holdfast"]

[tool.setuptools.package-data]
holdfast = ["product/**/*", "product/.web/**/*"]
"""


def stage(where: Path) -> None:
    """Write the sources of the wheel into an empty directory."""
    package = where / "holdfast"
    package.mkdir()
    (package / "__init__.py").write_text('"""Holdfast, installed: the command `holdfast` runs it."""\n')
    shutil.copy(ROOT / "tools" / "launcher.py", package / "__main__.py")
    bundle.copy(package / "product", with_packages=False)
    bundle.keep_names(package / "product")
    shutil.copy(ROOT / "LICENSE", where)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    (where / "pyproject.toml").write_text(project(version, pins()))


def build(staged: Path, where: Path) -> None:
    """Build the wheel of a staged directory into another one."""
    pip = [str(PYTHON), "-m", "pip", "wheel", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--wheel-dir", str(where), str(staged)], check=True)


def main() -> int:
    """Build the wheel of the screens that are built now, and print where it is."""
    MADE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="holdfast-wheel-") as directory:
        stage(Path(directory))
        build(Path(directory), MADE)
    newest = max(MADE.glob("holdfast-*.whl"), key=lambda path: path.stat().st_mtime)
    print(f"The wheel is {newest.relative_to(ROOT)}. Install it with pip, and start it with `holdfast run`.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
