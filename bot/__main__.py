"""Run the bot (`python -m bot`): log in to Discord's gateway and stay connected."""

import gc

if __name__ == "__main__":
    gc.disable()  # until `garbage_collection.freeze`

import asyncio
import contextlib
import signal
import sys

from bot.client import build
from bot.client_restart import live
from gateways import close_gateways
from models import use
from services.health import readiness
from services.runtime import garbage_collection, logs
from settings import settings


async def _live() -> None:
    await readiness.until_migrated()
    await live(build, settings().discord_bot_token.get_secret_value())


async def _run() -> None:
    task = asyncio.create_task(_live())
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, task.cancel)
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await task
    finally:
        await close_gateways()
        await use(None)


def main() -> None:
    """Run until stopped."""
    if not settings().database_url:
        sys.exit("DATABASE_URL is not set: the bot alone needs the database that web and jobs share.")
    logs.set_up()
    logs.note_start("bot")
    garbage_collection.freeze()
    asyncio.run(_run())


if __name__ == "__main__":
    main()
