"""The processes of the product on one machine, as data for the supervisor."""

import os
import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from app.postgres import restore_swap
from app.supervisor.child_process import Program
from app.supervisor.probe import address_of
from app.supervisor.single_instance import MARK
from app.supervisor.supervisor import ProcessPlan
from app.supervisor.web import command
from settings import LIVE_CREDENTIALS, LOOPBACK, ROOT, SECRET_SETTINGS, Settings, newest_migration

# The sandbox's exit code if no start can succeed, such as when its EVM node is missing and cannot be downloaded.
SANDBOX_CANNOT_START = 3
# The sandbox gets none of the product's secrets but Discord's credentials, because it must see them to refuse a start.
SANDBOX_HAS_NOT = frozenset({"DATABASE_URL", "REDIS_URL", *SECRET_SETTINGS}) - set(LIVE_CREDENTIALS)
# The variables by which a machine names its proxy to programs.
PROXIES = tuple(name for kind in ("http", "https", "all") for name in (f"{kind}_proxy", f"{kind}_proxy".upper()))


class Web(StrEnum):
    """How the web process runs: as built, with hot reload, or not at all (`reflex run --backend-only` replaces it)."""

    BUILT = "built"
    RELOADING = "reloading"
    ABSENT = "absent"


def data_dir(settings: Settings) -> Path:
    """Return the absolute directory of everything this machine stores."""
    return (ROOT / settings.data_dir).resolve()


def tilde_warning(given: Path) -> str | None:
    """Return a warning if the data lies in a directory that is named `~`, which earlier versions made of DATA_DIR."""
    if not str(given).startswith("~") or not (ROOT / given).exists():
        return None
    return (
        f"DATA_DIR is {given}, and the data is in {ROOT / given}, where an earlier version put it. To have it in "
        f"{os.path.expanduser(given)}, stop Holdfast and move the directory there."
    )


def home_dir(settings: Settings) -> Path:
    """Return the directory of what this mode stores: a live start finds nothing of the sandbox's."""
    return data_dir(settings) / ("sandbox" if settings.sandbox else "live")


def database_dir(settings: Settings) -> Path:
    """Return the directory of the embedded database, behind a link if it is one.

    A restore and an update move the directory itself, and would otherwise move the link. A link to nothing, as to a
    disk that is not mounted, is returned itself, so that no empty database is made there.
    """
    named = home_dir(settings) / "db"
    there = named.resolve()
    return there if there.exists() or restore_swap.is_cut_short(there) else named


def make_plan(settings: Settings, web: Web) -> ProcessPlan:
    """Return the processes for these settings."""
    python = (sys.executable, "-m")
    console = f" (sandbox console: http://localhost:{settings.sandbox_port}/console)" if settings.sandbox else ""
    sandbox = Program(
        "sandbox",
        (*python, "sandbox"),
        {
            "SANDBOX_DATA": str(home_dir(settings)),
            "SANDBOX_PORT": str(settings.sandbox_port),
            "SANDBOX_STRICT": os.environ.get("SANDBOX_STRICT") or "1",
            "PUBLIC_URL": settings.public_url,
        },
        ready_port=settings.sandbox_port,
        stop_seconds=15,
        hopeless_code=SANDBOX_CANNOT_START,
        without=SANDBOX_HAS_NOT,
    )
    programs = (
        *([sandbox] if settings.sandbox else []),
        *([_web(settings, web)] if web is not Web.ABSENT else []),
        Program("bot", (*python, "bot")),
        Program("jobs", (*python, "jobs"), stop_seconds=20, after_health=True),
    )
    # Neither the sandbox nor hot reload listens on BIND.
    bind = "" if settings.sandbox or web is Web.RELOADING else settings.bind
    health = (settings.port, "/health", settings.public_host, address_of(bind))
    return ProcessPlan(
        data_dir=data_dir(settings),
        cwd=ROOT,
        url=settings.public_url,
        programs=programs,
        environment=_environment(settings),
        database=None if settings.database_url else database_dir(settings),
        migrate=(*python, "alembic", "upgrade", "head"),
        newest_migration=newest_migration(),
        health=None if web is Web.ABSENT else health,
        ready_text=f"Holdfast is ready at {settings.public_url}{console}",
    )


def _web(settings: Settings, web: Web) -> Program:
    if web is Web.RELOADING:
        # Loopback only: development servers are not for other machines.
        where = ("--backend-host", "127.0.0.1", "--frontend-port", str(settings.port))
        # Brotli takes seconds, and each change of the code builds again.
        quick = {"REFLEX_FRONTEND_COMPRESSION_FORMATS": "gzip"}
        reflex = str(Path(sys.executable).with_name("reflex"))
        return Program("web", (reflex, "run", "--env", "preview", *where), quick)
    argv, environment = command()
    return Program("web", tuple(argv), environment, stop_seconds=15)


def _environment(settings: Settings) -> dict[str, str]:
    """Return the variables of every process: the database, the supervisor's mark, the virtual environment's PATH."""
    environment = dict(os.environ)
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment.get('PATH', os.defpath)}"
    environment |= {"HOLDFAST_SUPERVISED": "1", MARK: str(data_dir(settings)), "PYTHONUNBUFFERED": "1"}
    # nextcord 2.6 warns at every start about how it reads its own version.
    environment.setdefault("PYTHONWARNINGS", "ignore:pkg_resources is deprecated")
    environment |= _past_the_proxy(environment)
    if settings.database_url:
        environment["DATABASE_URL"] = settings.database_url
    return environment


def _past_the_proxy(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what lets every process ask this machine, where the sandbox is, without the proxy of the environment."""
    if not any(environment.get(name) for name in PROXIES):
        return {}
    kept = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    if kept.strip() == "*":
        return {}  # every host; in a list it has no meaning
    names = ",".join([*filter(None, [kept]), *sorted(LOOPBACK)])
    return {"no_proxy": names, "NO_PROXY": names}
