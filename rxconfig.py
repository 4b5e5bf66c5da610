"""How Reflex builds and serves the screens; everything an operator may change comes from settings.py."""

import os
from pathlib import Path
from typing import Any

import reflex as rx

from app import npm_packages
from app.supervisor import reflex_run
from locales import screens, text_marks
from settings import settings

# Before Reflex does anything: the whole product replaces a `reflex run`.
reflex_run.take_over()

# npm and node come from the wheel in the virtual environment; Reflex would otherwise download bun.
os.environ.setdefault("REFLEX_USE_NPM", "1")
os.environ.setdefault("REFLEX_CHECK_LATEST_VERSION", "false")
# No screen sends more than a few kilobytes in one event.
os.environ.setdefault("REFLEX_SOCKET_MAX_HTTP_BUFFER_SIZE", str(256 * 1024))
# A connection that went silent is given up after this time and the pause between two pings, 25 seconds: until then the
# screen shows nothing of it, and what is pressed is lost. Reflex waits two minutes.
os.environ.setdefault("REFLEX_SOCKET_TIMEOUT", "20")
# Folders that no screen is built from; one of them contains the database, which changes all the time.
NOT_WATCHED = ("data", "docs", "tests", "benchmarks", "deploy", "sandbox", "tools")
os.environ.setdefault("REFLEX_HOT_RELOAD_EXCLUDE_PATHS", os.pathsep.join(filter(os.path.exists, NOT_WATCHED)))

# The address baked into the build. `app/http/static_files.py` replaces it with the page's own, so it never needs to be
# true.
BUILT_ORIGIN = "http://localhost:3000"


class FetchedParts(rx.plugins.Plugin):
    """Gives Reflex the npm packages that set-up fetched, just before it installs what is missing."""

    def pre_compile(self, **context: Any) -> None:
        """Move the packages after the pages are compiled."""
        context["add_save_task"](self._move)

    def _move(self) -> None:
        npm_packages.move()


class EveryLanguage(rx.plugins.Plugin):
    """Writes the built screens in every language, before Reflex compresses them."""

    def post_build(self, **context: Any) -> None:
        """Write them if the build left marks; `make dev` and `reflex run` have English texts in the screens."""
        if os.environ.get(text_marks.WHILE_BUILDING):
            screens.write(Path(context["static_dir"]))


config = rx.Config(
    app_name="app",
    api_url=BUILT_ORIGIN,
    deploy_url=None,
    frontend_port=settings().port,
    backend_port=settings().port,
    # The sandbox is only for this machine.
    backend_host="127.0.0.1" if settings().sandbox else "0.0.0.0",
    cors_allowed_origins=[settings().public_url],
    redis_url=settings().redis_url,
    state_manager_mode="redis" if settings().redis_url else "memory",  # pyright: ignore[reportArgumentType]
    redis_token_expiration=900,
    telemetry_enabled=False,
    default_color_mode="system",
    show_built_with_reflex=False,
    frontend_compression_formats=["gzip", "brotli"],
    plugins=[
        FetchedParts(),
        EveryLanguage(),
        rx.plugins.TailwindV4Plugin(
            config={
                "plugins": [
                    {
                        "name": "daisyui@5.8.1",
                        "import": {"name": "default as daisyui", "from": "daisyui"},
                        "call": "daisyui",
                        # The colours are ours (assets/holdfast.css); only these parts are used.
                        "args": {"themes": False, "logs": False},
                    }
                ]
            }
        ),
    ],
    disable_plugins=[rx.plugins.SitemapPlugin],
)
