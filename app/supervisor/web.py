"""The production web process: screens, socket and API from one granian, without Reflex's own command."""

import os
import subprocess
import sys

from settings import ROOT, settings

APP = "app.__main__:web"


def command() -> tuple[list[str], dict[str, str]]:
    """Return the command and its environment; run it in the repository's root after `ensure_built`.

    In sandbox mode only this machine is served. Several workers need Redis to share their states.
    """
    host = "127.0.0.1" if settings().sandbox else settings().bind
    workers = (os.environ.get("WEB_CONCURRENCY", "").strip() or "2") if settings().redis_url else "1"
    argv = [
        sys.executable, "-m", "app.supervisor.granian_command", "--interface", "asgi", "--factory", APP,
        "--host", host, "--port", str(settings().port), "--workers", workers,
        # No screen and no proxy needs HTTP/2 here. A client that does not finish its headers is dropped soon.
        "--http", "1", "--http1-header-read-timeout", "10000",
        # Bytes behind the head of a request wait in this uncounted buffer (app/http/sockets/unfinished_messages.py).
        "--http1-buffer-size", "65536",
        "--log-level", "warning", "--no-access-log", "--workers-kill-timeout", "10",
    ]  # fmt: skip
    environment = {
        "PORT": str(settings().port),
        "PUBLIC_URL": settings().public_url,
        "REFLEX_ENV_MODE": "prod",
        # What `reflex run --env prod` sets for its own workers in 0.10.1; the version is pinned.
        "__REFLEX_SKIP_COMPILE": "true",
        "__REFLEX_MOUNT_FRONTEND_COMPILED_APP": "true",
    }
    return argv, environment


def main() -> None:
    """Run the web alone, where bot, jobs and database run elsewhere: `python -m app.supervisor.web`."""
    if not settings().database_url:
        sys.exit("DATABASE_URL is not set: the web alone needs the database that bot and jobs share.")
    try:
        subprocess.run([sys.executable, "-m", "app.build"], cwd=ROOT, check=True)
    except subprocess.CalledProcessError as fault:  # it has said why
        sys.exit(fault.returncode)
    argv, environment = command()
    os.chdir(ROOT)
    os.execve(argv[0], argv, {**os.environ, **environment, "HOLDFAST_SUPERVISED": "1"})


if __name__ == "__main__":
    main()
