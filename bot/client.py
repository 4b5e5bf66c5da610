"""The bot with everything that it listens to and answers."""

import nextcord
from nextcord.ext import commands
from nextcord.http import Route

from bot.events import Events
from bot.presses import Presses
from bot.pulse import Pulse
from bot.roles import Roles
from bot.service import Service
from bot.verify import Verify
from bot.wallets import Wallets
from settings import settings


def build() -> commands.AutoShardedBot:
    """The bot with its cogs; made inside the running loop, as the library needs it."""
    Route.BASE = settings().discord_api_url
    # Nobody is ever called: the library need not ask for its voice parts.
    nextcord.VoiceClient.warn_nacl = False
    bot = commands.AutoShardedBot(
        intents=nextcord.Intents(guilds=True, members=True),
        chunk_guilds_at_startup=False,
        guild_ready_timeout=0.5,
        allowed_mentions=nextcord.AllowedMentions.none(),
        help_command=None,
    )
    presses = Presses()
    for cog in (Events(bot), Pulse(bot), presses, Verify(presses), Roles(presses), Wallets(presses), Service(presses)):
        bot.add_cog(cog)
    return bot
