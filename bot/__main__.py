"""`python -m bot`: logs in to Discord's gateway and stays there."""

import asyncio
import contextlib
import logging
import signal

import nextcord
from nextcord.ext import commands
from nextcord.http import Route

from bot.events import Events
from gateways import close_gateways
from models import use
from settings import settings

log = logging.getLogger("holdfast.bot")


def build() -> commands.AutoShardedBot:
    """The bot with its cogs; made inside the running loop, as the library needs it."""
    Route.BASE = settings().discord_api_url
    # Nobody is ever called: the library need not ask for its voice parts.
    nextcord.VoiceClient.warn_nacl = False
    intents = nextcord.Intents(guilds=True, members=True)
    bot = commands.AutoShardedBot(
        intents=intents,
        chunk_guilds_at_startup=False,
        guild_ready_timeout=0.5,
        allowed_mentions=nextcord.AllowedMentions.none(),
        help_command=None,
    )
    bot.add_cog(Events(bot))
    return bot


async def _run() -> None:
    bot = build()
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(bot.start(settings().discord_bot_token.get_secret_value(), reconnect=True))
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, task.cancel)
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await task
    except nextcord.PrivilegedIntentsRequired:
        log.critical("Discord refuses the intent. Turn on Server Members Intent: Developer Portal › Bot.")
        raise SystemExit(3) from None
    except nextcord.LoginFailure:
        log.critical("Discord rejects DISCORD_BOT_TOKEN. Copy it again: Developer Portal › Bot › Reset Token.")
        raise SystemExit(3) from None
    finally:
        if not bot.is_closed():
            await bot.close()
        await close_gateways()
        await use(None)


def main() -> None:
    """Run until told to stop."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("nextcord").setLevel(logging.WARNING)
    asyncio.run(_run())


if __name__ == "__main__":
    main()
