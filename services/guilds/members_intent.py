"""The Server Members Intent of our application: without it Discord lists no members and reports no changes to them."""

from gateways import Gateways
from gateways.transport.errors import ProviderError

WHERE = "Turn on Server Members Intent: Developer Portal › Bot."
NOT_TOLD = f"Discord no longer tells the bot who joins, leaves or changes (50001). {WHERE}"


async def is_off(outside: Gateways) -> bool:
    """Return whether Discord says that the intent is off; False if it does not answer."""
    try:
        return not (await outside.discord.application()).members_intent
    except ProviderError:
        return False
