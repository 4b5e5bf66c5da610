"""The targets of the Makefile, each with its set-up. Runs on a bare Python, before anything is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from typing import Callable  # noqa: UP035  (also run by Pythons that are too old)

from app.supervisor.system import escape_output, refusal, unusable
from tools.progress import StepFailed, Teller
from tools.steps import (
    LOG,
    OLDEST,
    PYTHON,
    ROOT,
    VENV,
    Parts,
    SetUp,
    become,
    browser,
    build,
    checks,
    environment,
    from_pip,
    hand_over,
    inside,
    packages,
    peers,
    product,
    read_tests,
    second_client,
    tools,
    tools_of_a_start,
    types_beside,
)

FUZZED = (
    "tests/system/web/test_call_fuzz.py", "tests/system/web/test_event_fuzz.py",
    "tests/app/api/requests/test_budget.py", "tests/services/rules/test_strangers_texts.py",
    "tests/services/holdings/test_confirmed_histories.py", "tests/services/engine/test_looked_histories.py",
    "tests/services/roles/histories/test_histories.py", "tests/system/browser/test_every_language.py",
    "tests/sandbox/discord/test_odd_bodies.py", "tests/sandbox/test_odd_questions.py",
    "tests/system/browser/test_outages.py",
)  # fmt: skip
# These are never sent: they only leave the sandbox's banner out of the screens. deploy/image/screens.sh sets the same.
LIVE_BUILD = {
    "DISCORD_CLIENT_ID": "none", "DISCORD_CLIENT_SECRET": "none", "DISCORD_BOT_TOKEN": "none",
    "SECRET_KEY": "not-needed-to-build-the-screens-at-all",
}  # fmt: skip
ANYWHERE = frozenset({"check", "texts", "lock", "audit", "release", "clean"})
"""Targets that start nothing of the product and so need no Linux."""
MADE = (".venv", ".web", ".states", ".pytest_cache", ".ruff_cache", ".hypothesis")


def main(target: str, arguments: list[str]) -> int:
    """Run one target of the Makefile; return the exit code unless another program replaced this one."""
    escape_output()
    if target not in TARGETS:
        print(f"Unknown target {target!r}: one of {', '.join(TARGETS)}.")
        return 2
    if target not in ANYWHERE and (refused := refusal()):
        print(refused)
        return 1
    os.chdir(ROOT)
    try:
        use_a_new_enough_python(target, arguments)
        return TARGETS[target](arguments)
    except StepFailed as failed:
        print(failed)
        return 1
    except OSError as fault:
        print(unusable(fault))
        return 1
    except KeyboardInterrupt:
        print("\nstopped")
        return 130


def run(arguments: list[str]) -> int:
    """`make run`: set up and start the product."""
    refuse_first()
    everything()
    return become("-m", "app", *arguments)


def dev(arguments: list[str]) -> int:
    """`make dev`: the same with hot reload, for which the web process builds the screens."""
    refuse_first()
    teller = Teller(3, LOG)
    with SetUp(), Parts() as parts:
        environment(teller)
        packages(teller, "requirements.txt", parts.start)
        tools_of_a_start(teller)
        parts.wait()  # the web process does not wait
        # Hot reload overwrites the built screens, which are stale afterwards.
        (ROOT / ".web" / "holdfast.stamp").unlink(missing_ok=True)
    return become("-m", "app", "--dev", *arguments)


def refuse_first() -> None:
    """Raise StepFailed with the product's own sentence if it refuses to start, as it does when it already runs.

    A set-up would replace packages and screens under the product that runs. Without an earlier set-up nothing is asked.
    """
    try:
        asked = subprocess.run(
            [str(PYTHON), "-m", "app", "--check"], cwd=ROOT, env=inside(), stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, check=False,
        )  # fmt: skip
    except OSError:  # not set up yet, or the environment was moved here
        return
    # An unfinished set-up lacks packages: then it ends with an error and prints nothing here.
    if asked.returncode != 0 and asked.stdout:
        raise StepFailed(asked.stdout.strip())


def test(arguments: list[str]) -> int:
    """`make test`: set up, check, then run every test."""
    # Tests start hundreds of processes that import the same modules.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    teller = Teller(8 if arguments else 9, LOG)
    with ExitStack() as beside:
        with SetUp(), Parts() as parts:
            environment(teller)
            packages(teller, "requirements-dev.txt", parts.start)
            typed = beside.enter_context(types_beside())
            tools(teller)
            build(teller)
            browser(teller)
            second_client(teller)
            if not arguments:
                read_tests(teller)
        # A whole run is long enough to check the types in parallel.
        checks(teller, typed if arguments else None)
        if not arguments:
            hand_over(typed)
        teller.begin("Tests")
        teller.done("begin")
        # With arguments of your own you get exactly those.
        return become("-m", "pytest", *(arguments or ["-n", str(workers())]))


def workers() -> int:
    """Return the number of test processes: two more than cores, since tests spend half of their time waiting."""
    return (os.cpu_count() or 1) + 2


def fuzz(arguments: list[str]) -> int:
    """`make fuzz`: many more odd calls, events and texts than usual, and screens in every language and outage."""
    what_tests_need()
    os.environ.update({"FUZZ_EXAMPLES": "50", "FUZZ_ROUNDS": "60", "HISTORIES": "10000", "HYPOTHESIS_PROFILE": "fuzz",
                       "EVERY_LANGUAGE": "1", "EVERY_OUTAGE": "1"})  # fmt: skip
    return become("-m", "pytest", "-n", "0", *(arguments or FUZZED))


def bench(arguments: list[str]) -> int:
    """`make bench`: measure the product, beside other libraries that are installed for it."""
    teller = Teller(5, LOG)
    with SetUp():
        product(teller, "requirements-dev.txt")
        peers(teller)
    return become("-m", "benchmarks", *arguments)


def backup(arguments: list[str]) -> int:
    """`make backup`: write the database to one file, at FILE if that is set."""
    interpreter()
    to = ["--to", os.environ["FILE"]] if os.environ.get("FILE") else []
    return become("-m", "app.backup", "make", *to, *arguments)


def restore(arguments: list[str]) -> int:
    """`make restore`: restore the backup FILE; FORCE=1 moves the present database aside."""
    if not os.environ.get("FILE"):
        raise StepFailed("Which backup? make restore FILE=data/backups/….dump")
    interpreter()
    force = ["--force"] if os.environ.get("FORCE") == "1" else []
    return become("-m", "app.backup", "restore", os.environ["FILE"], *force, *arguments)


def audit(arguments: list[str]) -> int:
    """`make audit`: report known vulnerabilities of the pinned Python and npm packages, from the registries."""
    teller = Teller(3, LOG)
    with SetUp():
        environment(teller)
        auditor = from_pip(teller, "Auditor of requirements", "pip-audit")
    sys.stdout.flush()
    # Nothing is resolved or installed. A pin that cannot be looked up is a failure.
    python = [str(auditor), "--strict", "--disable-pip", "--no-deps", "-r", "requirements.txt", *arguments]
    code = subprocess.run(python, env=inside(), check=False).returncode
    for home in ("reflex.lock", "sandbox/npm"):
        print(f"npm packages of {home}", flush=True)
        npm = [str(VENV / "bin" / "npm"), "audit", "--package-lock-only", "--omit=dev"]
        code = subprocess.run(npm, cwd=ROOT / home, env=inside(), check=False).returncode or code
    return code


def interpreter() -> None:
    """Set up the Python packages, for targets that need neither screens nor sandbox."""
    teller = Teller(2, LOG)
    with SetUp():
        environment(teller)
        packages(teller, "requirements.txt")


def fresh(arguments: list[str]) -> int:
    """`make fresh`: run both commands of the README on minimal Debian machines; needs root and debootstrap."""
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "tools.fresh.machine", *arguments])


def wheel(arguments: list[str]) -> int:
    """`make wheel`: build the screens for a live start, and a wheel of them and the code."""
    os.environ.update(LIVE_BUILD)
    everything()
    return become("-m", "tools.wheel", *arguments)


def release(arguments: list[str]) -> int:
    """`make release`: print what a release of VERSION would change or, with `--tag`, make it."""
    version = [os.environ["VERSION"]] if os.environ.get("VERSION") else []
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "tools.release", *version, *arguments])


def update(arguments: list[str]) -> int:
    """`make update`: install the newest release, or VERSION, and go back if it does not work.

    After an interrupted update nothing is set up first: there may be no network, and only half an installation.
    """
    words = [os.environ["VERSION"]] if os.environ.get("VERSION") else []
    words += ["--restore", os.environ["FILE"]] if os.environ.get("FILE") else []
    if (ROOT / "data" / "update.json").exists():
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, "-m", "app.supervisor.update", *words, *arguments])
    interpreter()
    return become("-m", "app.supervisor.update", *words, *arguments)


def set_up(_: list[str]) -> int:
    """Set everything up and start nothing, for an update."""
    everything()
    return 0


def everything(requirements: str = "requirements.txt") -> None:
    """Set up what the product needs."""
    teller = Teller(4, LOG)
    with SetUp():
        product(teller, requirements)


def what_tests_need() -> None:
    """Set up the product, its checks, and a browser."""
    teller = Teller(5, LOG)
    with SetUp():
        product(teller, "requirements-dev.txt")
        browser(teller)


def check(_: list[str]) -> int:
    """`make check`: check style and types."""
    teller = Teller(3, LOG)
    with SetUp():
        environment(teller)
        packages(teller, "requirements-dev.txt")
    with types_beside() as typed:
        checks(teller, typed)
    return 0


def lock(arguments: list[str]) -> int:
    """`make lock`: pin the .in files' requirements for every Python from 3.11; `ARGS=--upgrade` takes newer ones.

    The image installs the same pins with the hashes of their files (`deploy/requirements.txt`).
    """
    teller = Teller(5, LOG)
    with SetUp():
        environment(teller)
        uv = from_pip(teller, "Compiler of requirements", "uv")
        compiler = [str(uv), "pip", "compile", "--universal", "--python-version", "3.11"]
        options = ["--no-header", "--no-emit-index-url", "-q", *arguments]
        for name, bound in (("requirements", []), ("requirements-dev", ["-c", "requirements.txt"])):
            teller.begin(f"{name}.txt")
            teller.run([*compiler, *options, *bound, f"{name}.in", "-o", f"{name}.txt"], inside())
            teller.done("compiled")
        teller.begin("deploy/requirements.txt")
        hashed = [*options, "--generate-hashes", "--no-annotate", "-c", "requirements.txt"]
        teller.run([*compiler, *hashed, "requirements.in", "-o", "deploy/requirements.txt"], inside())
        teller.done("compiled")
    return 0


def clean(_: list[str]) -> int:
    """`make clean`: remove everything generated except data/."""
    caches = [path for path in ROOT.rglob("__pycache__") if VENV not in path.parents]
    for path in [*(ROOT / name for name in MADE), *caches]:
        if path.exists():
            print(f"removing {path.relative_to(ROOT)}")
            shutil.rmtree(path, ignore_errors=True)
    return 0


def use_a_new_enough_python(target: str, arguments: list[str]) -> None:
    """Restart with a newer Python of this machine if this one is too old. Raises StepFailed if there is none."""
    if sys.version_info >= OLDEST:
        return
    for name in ("python3.11", "python3.12", "python3.13", "python3.14"):
        path = shutil.which(name)
        if path:
            os.execv(path, [path, "-m", "tools.prepare", target, *arguments])
    raise StepFailed(
        f"Python 3.11 or newer is needed; {sys.executable} is {sys.version.split()[0]}. Install one "
        "(Debian, Ubuntu: apt-get install python3 python3-venv), or name it: make run PYTHON=/path/to/python3"
    )


def runs(needed: Callable[[], None], *command: str) -> Callable[[list[str]], int]:
    """Return a target that sets up what it needs, and becomes a module with these and the given arguments."""

    def target(arguments: list[str]) -> int:
        needed()
        return become("-m", *command, *arguments)

    return target


TARGETS: dict[str, Callable[[list[str]], int]] = {
    "run": run, "dev": dev, "test": test, "check": check, "fuzz": fuzz, "bench": bench,
    "backup": backup, "restore": restore, "audit": audit, "fresh": fresh, "wheel": wheel, "release": release,
    "update": update, "set-up": set_up, "lock": lock, "clean": clean,
    "soak": runs(lambda: everything("requirements-dev.txt"), "tests.system.soak.run"),
    "psql": runs(interpreter, "app.backup", "psql"),
    "doctor": runs(interpreter, "app.doctor"),
    "live-check": runs(interpreter, "app.live_check"),
    "texts": runs(interpreter, "tools.texts"),
    "fresh-image": runs(interpreter, "tools.fresh.image"),
    "fresh-wheel": runs(interpreter, "tools.fresh.wheel"),
    "screenshots": runs(what_tests_need, "tests.support.screenshots"),
    "demo": runs(what_tests_need, "docs.pictures.draw_demo"),
    "load": runs(what_tests_need, "tests.support.load"),
    "lighthouse": runs(what_tests_need, "tests.support.lighthouse"),
}  # fmt: skip
"""What each target does, as `make help` says."""

if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "run", sys.argv[2:]))
