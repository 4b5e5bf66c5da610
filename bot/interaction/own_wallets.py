"""A member's wallets and their choices for the server, and what to say when none of the wallets counts there."""

from dataclasses import replace

from bot.messages import sentences
from bot.messages.reply import Reply
from models import transaction
from services.guilds.members import MemberContext
from services.privacy import preferences
from services.privacy.preferences import ChoiceView
from services.wallets import wallets
from services.wallets.wallets import WalletView


async def read(member: MemberContext) -> tuple[list[WalletView], ChoiceView | None]:
    """Return the member's wallets, and their choices for this server if they are in it."""
    async with transaction() as db:
        found = await wallets.list_wallets(db, member.actor)
        choices = await preferences.choices(db, member.actor)
    return found, next((one for one in choices if one.server_id == member.server_id), None)


async def with_hint(member: MemberContext, reply: Reply) -> Reply:
    """Return the reply; if no wallet of the member counts here, it says so first and has the button to change it."""
    hint = sentences.none_counts(*await read(member))
    if hint is None:
        return reply
    text, button = hint
    return replace(
        reply, text="\n\n".join(part for part in (text, reply.text) if part), buttons=(*reply.buttons, button)
    )
