"""What people write in channels themselves, and whom a text calls."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sandbox.discord import channels, permissions, shapes
from sandbox.discord.entities import Channel, Guild, Member, Message, User
from sandbox.discord.snowflakes import now_iso
from sandbox.refusal import Refusal

if TYPE_CHECKING:
    from sandbox.discord import Discord

LONGEST = 2000
_CALLED = re.compile(r"<@!?(\d{15,20})>")
_TYPED = re.compile(r"(?<![\w<])@([\w.]{1,32})")


def say(discord: "Discord", guild: Guild, channel: Channel, member: Member, text: str) -> Message:
    """Post the text as the member; `@username` becomes a mention, as in Discord's client. Raises Refusal."""
    granted = permissions.channel_permissions(guild, channel, member)
    if not granted & permissions.VIEW_CHANNEL:
        raise Refusal(403, f"That member cannot see #{channel.name}.")
    if not granted & permissions.SEND_MESSAGES:
        raise Refusal(403, f"You do not have permission to send messages in #{channel.name}.")
    content = _TYPED.sub(lambda found: _mention(discord, guild, found), text.strip())
    if not 1 <= len(content) <= LONGEST:
        raise Refusal(400, f"A message has 1 to {LONGEST} characters.")
    message = Message(discord.world.ids.next(), channel.id, member.user_id, content, now_iso())
    message.mentions = [shapes.user(user) for user in called(discord, content)]
    channels.posted(discord, message)
    return message


def called(discord: "Discord", content: str, allowed: Any = None) -> Sequence[User]:
    """The users whom a text mentions, as far as a bot's `allowed_mentions` lets it."""
    ids = dict.fromkeys(_CALLED.findall(content))
    found = [discord.world.users[id_] for id_ in ids if id_ in discord.world.users]
    if not isinstance(allowed, dict) or "users" in (allowed.get("parse") or []):
        return found
    named = [str(id_) for id_ in allowed.get("users") or []]
    return [user for user in found if user.id in named]


def _mention(discord: "Discord", guild: Guild, found: re.Match[str]) -> str:
    user = discord.user_called(found[1])
    return f"<@{user.id}>" if user is not None and user.id in guild.members else found[0]
