"""What people themselves write in channels, and whom a text mentions."""

import re
from collections.abc import Sequence

from sandbox.base.refusal import Refusal
from sandbox.discord.actions import channels
from sandbox.discord.forms.schema import Form
from sandbox.discord.world import permissions, shapes
from sandbox.discord.world.entities import Channel, Guild, Member, Message, User
from sandbox.discord.world.protocols import Discord
from sandbox.discord.world.snowflakes import now_iso

LONGEST = 2000
_CALLED = re.compile(r"<@!?(\d{15,20})>")
_ROLE = re.compile(r"<@&(\d{15,20})>")
_EVERYBODY = re.compile(r"@(everyone|here)\b")
_TYPED = re.compile(r"(?<![\w<])@([\w.]{1,32})")


def say(discord: Discord, guild: Guild, channel: Channel, member: Member, text: str) -> Message:
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


def called(discord: Discord, content: str) -> Sequence[User]:
    """Return the users whom a text mentions."""
    ids = dict.fromkeys(_CALLED.findall(content))
    return [discord.world.users[id_] for id_ in ids if id_ in discord.world.users]


def call_out(discord: Discord, message: Message, allowed: Form | None) -> None:
    """Set the mentions of a bot's message, as far as `allowed_mentions` and the bot's permissions allow.

    Without `allowed_mentions` an interaction's answer mentions only users; another message mentions everybody it names.
    """
    if allowed is None:
        allowed = {"parse": ["users"] if message.webhook_id else ["users", "roles", "everyone"]}
    message.mentions = [
        shapes.user(user) for user in called(discord, message.content) if _lets(allowed, "users", user.id)
    ]
    channel = discord.world.channels.get(message.channel_id)
    if channel is None:
        return  # not in a guild, so that there are no roles and no everyone
    guild = discord.world.guilds[channel.guild_id]
    own = guild.members.get(discord.bot_id)
    granted = permissions.channel_permissions(guild, channel, own) if own else 0
    may_call_all = bool(granted & permissions.MENTION_EVERYONE)
    roles = [guild.roles[id_] for id_ in dict.fromkeys(_ROLE.findall(message.content)) if id_ in guild.roles]
    message.mention_roles = [
        role.id for role in roles if (role.mentionable or may_call_all) and _lets(allowed, "roles", role.id)
    ]
    loud = _EVERYBODY.search(message.content) is not None
    message.mention_everyone = loud and may_call_all and "everyone" in (allowed.get("parse") or [])


def _lets(allowed: Form, kind: str, wanted: str) -> bool:
    return kind in (allowed.get("parse") or []) or wanted in (allowed.get(kind) or [])


def _mention(discord: Discord, guild: Guild, found: re.Match[str]) -> str:
    user = discord.user_called(found[1])
    return f"<@{user.id}>" if user is not None and user.id in guild.members else found[0]
