"""Run the whole product on this machine until stopped: `python -m app`."""

import argparse
import asyncio
import gc
import os
import sys
from typing import TYPE_CHECKING

from app.build import KEPT, BuildFailed, ensure_built
from app.postgres.account import NoDatabaseAccount
from app.postgres.binaries import PostgresFailed
from app.supervisor.installed import journal, update_under_way
from app.supervisor.output import say
from app.supervisor.processes import Web, data_dir, make_plan, tilde_warning
from app.supervisor.single_instance import AlreadyRunning, running
from app.supervisor.supervisor import StartFailed, Supervisor
from app.supervisor.system import escape_output, refusal, unusable
from settings import ROOT, Settings, SettingsError, load, version

if TYPE_CHECKING:
    from starlette.types import ASGIApp


def main() -> int:
    """Run until stopped. Return exit code 0 after a stop, 1 (with a printed sentence) if the start failed."""
    parser = argparse.ArgumentParser(prog="python -m app", description="Run Holdfast on this machine.")
    web = parser.add_mutually_exclusive_group()
    web.add_argument("--dev", dest="web", action="store_const", const=Web.RELOADING, help="hot reload")
    web.add_argument("--build", action="store_true", help="build the screens first, where they are stale")
    web.add_argument("--without-web", dest="web", action="store_const", const=Web.ABSENT, help="all but the web")
    parser.add_argument("--check", action="store_true", help="start nothing: say whether a start would be refused")
    parser.add_argument("--end-with", type=int, metavar="PID", help="stop when this parent process is gone")
    parser.set_defaults(web=Web.BUILT)
    arguments = parser.parse_args()
    escape_output()
    if refused := refusal():
        print(f"holdfast| {refused}", flush=True)
        return 1
    try:
        chosen = load()
        if arguments.check:
            _refuse_during_update()
            _refuse_beside_another(chosen)
            return 0
        if os.geteuid() == 0:
            say("running as root, which nothing here needs: an ordinary user is safer")
        if warning := tilde_warning(chosen.data_dir):
            say(warning)
        _refuse_during_update()
        if chosen.chains_file:
            # Imported only if needed: the table of chains imports every client.
            from gateways.chains import catalogue

            catalogue.check()
        plan = make_plan(chosen, arguments.web)
        say(f"{chosen.product_name} {version()}")
        if arguments.build or KEPT.exists():
            ensure_built(say)
        # An update may have begun during the build.
        asyncio.run(_run(Supervisor(plan, say=say, check=_refuse_during_update), arguments.end_with))
    except SettingsError as fault:  # they also say in which format the log is
        print(f"holdfast| {fault}", flush=True)
        return 1
    except (AlreadyRunning, StartFailed, PostgresFailed, NoDatabaseAccount, BuildFailed) as fault:
        say(str(fault))
        return 1
    except OSError as fault:
        say(unusable(fault))
        return 1
    return 0


def _refuse_during_update() -> None:
    if journal(ROOT).open:
        raise StartFailed(update_under_way(ROOT))


def _refuse_beside_another(chosen: Settings) -> None:
    if found := running(data_dir(chosen)):
        raise AlreadyRunning(found if found.pid else None)


def web() -> "ASGIApp":
    """Import the web app for granian; garbage collection is off until the app starts (`garbage_collection.freeze`)."""
    gc.disable()
    from app.app import app

    return app()


async def _run(supervisor: Supervisor, parent: int | None) -> None:
    watch = asyncio.create_task(_end_with(parent, supervisor)) if parent else None
    try:
        await supervisor.run()
    finally:
        if watch is not None:
            watch.cancel()


async def _end_with(parent: int, supervisor: Supervisor) -> None:
    """Stop when the process that started us ends (a `reflex run --backend-only` may be killed in any way)."""
    while os.getppid() == parent:
        await asyncio.sleep(0.5)
    supervisor.stop()


if __name__ == "__main__":
    sys.exit(main())
