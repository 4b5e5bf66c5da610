"""The Server Members Intent of our application: without it Discord lists no members and reports no changes to them."""

from gateways import Gateways
from gateways.transport.errors import ProviderError
from locales import N_, _, number
from models.db.session import AsyncSession
from settings import settings

NOT_TOLD = N_(
    "Discord does not tell the bot who joins, leaves or changes (50001), so it reads the people it knows again in each "
    "sweep. Turn on Server Members Intent: Developer Portal › Bot."
)
NOT_ASKED = N_(
    "The bot does not ask Discord who joins, leaves or changes (MEMBERS_INTENT=off), so it reads the people it knows "
    "again in each sweep."
)
REVIEWED_FROM = 10_000
"""Number of users from which Discord reviews who gets the intent (docs/facts.md#discord-intents)."""
WARNED_FROM = 8_000
ENDS_BELOW = 7_500
"""Number of users below which a warning in log channels ends. The number changes with each member who joins or leaves,
so it is less than WARNED_FROM."""
MOST_SERVERS = 10
"""Maximum number of servers for which the warning is posted in log channels: if there are more, few admins know who
runs the bot."""


async def is_off(outside: Gateways) -> bool | None:
    """Return whether Discord says that the intent is off; None if it does not answer."""
    try:
        return not (await outside.discord.application()).members_intent
    except ProviderError:
        return None


async def may_ask(outside: Gateways) -> bool:
    """Return whether the bot's next session should ask for the intent, by MEMBERS_INTENT; `auto` asks Discord."""
    chosen = settings().members_intent
    return chosen == "on" or (chosen == "auto" and not await is_off(outside))


async def hears_members(db: AsyncSession) -> bool:
    """Return whether the bot receives events about members, as it last reported; True if it never reported."""
    (rows,) = await db.together(("SELECT reason FROM provider_state WHERE provider = 'bot' AND state = 'ok'", {}))
    return not any(reason in {NOT_TOLD, NOT_ASKED} for (reason,) in rows)


async def may_list_members(db: AsyncSession) -> bool:
    """Return whether the bot is connected and may list members, as it reported within the last minute."""
    (rows,) = await db.together(
        (
            "SELECT reason FROM provider_state WHERE provider = 'bot' AND state = 'ok' "
            "AND checked_at > now() - interval '1 minute'",
            {},
        )
    )
    return bool(rows) and not any(reason in {NOT_TOLD, NOT_ASKED} for (reason,) in rows)


def told_without_intent() -> str:
    """Return the sentence for Health about a bot that receives no events about members."""
    return NOT_ASKED if settings().members_intent == "off" else NOT_TOLD


async def count_members(db: AsyncSession) -> tuple[int, int]:
    """Return the members of all servers and the number of servers; people in several servers count in each."""
    rows = await db.together(("SELECT COALESCE(sum(member_count), 0), count(*) FROM server WHERE bot_invited", {}))
    ((count, servers),) = rows[0]
    return int(count), servers


def review_warning(count: int) -> str:
    """Return the warning about Discord's review for this number of users; empty below WARNED_FROM."""
    if count < WARNED_FROM:
        return ""
    return _(
        "The bot's servers have up to {count} members together. From {most} users on Discord reviews whether the bot "
        "gets the Server Members Intent (docs/privileged-intents.md); without it everything goes on, with people read "
        "in each sweep."
    ).format(count=number(count), most=number(REVIEWED_FROM))
