"""`make lighthouse`: Lighthouse's scores of the public pages, on the built product and in the system's Chromium.

Not part of `make test`, since its performance score is a timing. Exits with 1 when a page scores below our promise.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.conftest import ROOT, temporary_dir
from tests.support.product import DAY, running

PAGES = ("/", "/features", "/help-center", "/login")
PROMISED = {"accessibility": 100, "best-practices": 100, "seo": 100}
PERFORMANCE = 95
"""Score promised for the landing page, with Lighthouse's mobile preset (a simulated slow phone on a slow network)."""
LOOKS = 3
"""How often each page is measured, one round after another; the median performance score counts, as it is a timing."""
TOOLS = ROOT / "data" / "tools"
CHROME = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-background-networking"


def install() -> Path:
    """Install the pinned Lighthouse below data/tools unless it is there, and return the path of its program."""
    place = TOOLS / "lighthouse"
    program = place / "node_modules" / "lighthouse" / "cli" / "index.js"
    place.mkdir(parents=True, exist_ok=True)
    lock = ROOT / "tests" / "support" / "npm" / "package-lock.json"
    stamp = place / "package-lock.json"
    if program.exists() and stamp.exists() and stamp.read_text() == lock.read_text():
        return program
    for name in ("package.json", ".npmrc"):
        shutil.copyfile(lock.with_name(name), place / name)
    shutil.copyfile(lock, stamp)
    subprocess.run(["npm", "ci"], cwd=place, check=True)
    return program


def scores(program: Path, url: str, directory: Path) -> tuple[dict[str, int], list[str]]:
    """Return a page's score in each category (0 to 100), and the audits outside performance that cost points."""
    report = directory / "report.json"
    command = ["node", str(program), url, "--quiet", "--output=json", f"--output-path={report}"]
    environment = os.environ | {"CHROME_PATH": (TOOLS / "browser").read_text().strip()}
    subprocess.run([*command, f"--chrome-flags={CHROME}"], env=environment, check=True)
    read: dict[str, Any] = json.loads(report.read_text())
    kept = TOOLS.parent / "lighthouse"
    kept.mkdir(exist_ok=True)
    shutil.copyfile(report, kept / f"{url.rstrip('/').rpartition('/')[2].replace(':', '-')}.json")
    found = {name: round(100 * (part["score"] or 0)) for name, part in read["categories"].items()}
    costly = [
        f"{name}: {read['audits'][one['id']]['title']}"
        for name in PROMISED
        for one in read["categories"][name]["auditRefs"]
        if one["weight"] and (read["audits"][one["id"]]["score"] or 0) < 1
        and read["audits"][one["id"]]["scoreDisplayMode"] not in {"notApplicable", "manual", "informative"}
    ]  # fmt: skip
    return found, costly


def main() -> int:
    """Measure each page and print a table; return 1 when a page scores below our promise."""
    program = install()
    below = 0
    with temporary_dir() as directory, running(directory, DAY) as machine:
        seen = [{path: scores(program, machine.product.url + path, directory) for path in PAGES} for _ in range(LOOKS)]
    print(f"{'page':16}{'performance':>13}{'its looks':>13}" + "".join(f"{name:>16}" for name in PROMISED), flush=True)
    for path in PAGES:
        looks = sorted(look[path][0]["performance"] for look in seen)
        performance = looks[LOOKS // 2]
        worst = {name: min(look[path][0][name] for look in seen) for name in PROMISED}
        row = "".join(f"{worst[name]:>16}" for name in PROMISED)
        print(f"{path:16}{performance:>13}{' '.join(map(str, looks)):>13}{row}", flush=True)
        for line in sorted({line for look in seen for line in look[path][1]}):
            print(f"    {line}", flush=True)
        below += any(worst[name] < least for name, least in PROMISED.items())
        below += path == "/" and performance < PERFORMANCE
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
