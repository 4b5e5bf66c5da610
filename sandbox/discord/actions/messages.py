"""What can happen to messages: written by the bot or by a person, posted, edited and deleted; and whom they mention."""

import re
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from sandbox.base.refusal import Refusal
from sandbox.discord.forms import messages as forms
from sandbox.discord.forms.components import CONTAINER, FILE, GALLERY, SELECTS, SEPARATOR, THUMBNAIL, all_of
from sandbox.discord.forms.messages import COMPONENTS_V2
from sandbox.discord.forms.schema import Form, Path
from sandbox.discord.world import intents, permissions, shapes
from sandbox.discord.world.entities import EPHEMERAL, Channel, Guild, Member, Message, User
from sandbox.discord.world.protocols import Discord
from sandbox.discord.world.snowflakes import now_iso

SUPPRESS_EMBEDS = 4
SUPPRESS_NOTIFICATIONS = 1 << 12
SETTABLE_FLAGS = SUPPRESS_EMBEDS | EPHEMERAL | SUPPRESS_NOTIFICATIONS | COMPONENTS_V2
LONGEST = 2000
_CALLED = re.compile(r"<@!?(\d{15,20})>")
_ROLE = re.compile(r"<@&(\d{15,20})>")
_EVERYBODY = re.compile(r"@(everyone|here)\b")
_TYPED = re.compile(r"(?<![\w<])@([\w.]{1,32})")


def write(discord: Discord, message: Message, form: Form, *, ephemeral_allowed: bool, path: Path = ()) -> None:
    """Write the form into the message. Raises 50035, or 50006 (empty message); `path` is the form's place."""
    numbers = count(1)
    read = forms.message(form, path, message.flags & COMPONENTS_V2)
    flags = (read.get("flags") or 0) & (SETTABLE_FLAGS if ephemeral_allowed else SETTABLE_FLAGS & ~EPHEMERAL)
    text, embeds, components = message.content, message.embeds, message.components
    if "content" in read:
        text = read["content"] or ""
    if "embeds" in read:
        embeds = [_shown_embed(embed) for embed in read["embeds"] or []]
    if "components" in read:
        components = [_shown_component(component, numbers, discord) for component in read["components"] or []]
    if not (text or embeds or components):
        raise forms.empty()
    if (message.flags | flags) & COMPONENTS_V2 and (text or embeds):
        raise forms.legacy("content" if text else "embeds", path)
    message.content, message.embeds, message.components = text, embeds, components
    message.flags |= flags
    _set_mentions(discord, message, read.get("allowed_mentions"))


def _shown_embed(embed: dict[str, Any]) -> dict[str, Any]:
    shown = {**embed, "type": "rich"}
    shown["fields"] = [{"inline": False, **field} for field in embed.get("fields", [])]
    return {name: value for name, value in shown.items() if value not in ("", [])}


def _shown_component(component: dict[str, Any], numbers: Iterator[int], discord: Discord) -> dict[str, Any]:
    """Return a component with its number and Discord's defaults."""
    kind = component["type"]
    shown = {**component, "id": component.get("id") or next(numbers)}
    if kind == CONTAINER:
        shown = {"accent_color": None, "spoiler": False, **shown}
    if kind == SEPARATOR:
        shown = {"spacing": 1, "divider": True, **shown}
    if kind in SELECTS:
        shown = {"min_values": 1, "max_values": 1, "disabled": False, **shown}
    if kind == THUMBNAIL:
        shown |= _pictured(component, discord)
    if kind == GALLERY:
        shown["items"] = [_pictured(item, discord) for item in component["items"]]
    if kind == FILE:
        shown |= {"file": _media(component["file"], discord), "name": None, "size": None}
        shown.setdefault("spoiler", False)
    if "components" in component:
        shown["components"] = [_shown_component(each, numbers, discord) for each in component["components"]]
    if component.get("accessory"):
        shown["accessory"] = _shown_component(component["accessory"], numbers, discord)
    return shown


def _pictured(item: dict[str, Any], discord: Discord) -> dict[str, Any]:
    return {"description": None, "spoiler": False, **item, "media": _media(item["media"], discord)}


def _media(media: dict[str, Any], discord: Discord) -> dict[str, Any]:
    """Return a picture or file as Discord describes it; nobody fetches it here, so its size is unknown."""
    return {**media, "id": discord.world.ids.next(), "proxy_url": media["url"], "width": None, "height": None}


def find(components: list[dict[str, Any]], custom_id: str) -> dict[str, Any] | None:
    """Return the component with this custom id, however deeply it is nested."""
    return next((each for each, _ in all_of(components) if each.get("custom_id") == custom_id), None)


def say(discord: Discord, guild: Guild, channel: Channel, member: Member, text: str) -> Message:
    """Post the text as the member; `@username` becomes a mention, as in Discord's client. Raises Refusal."""
    granted = permissions.channel_permissions(guild, channel, member)
    if not granted & permissions.VIEW_CHANNEL:
        raise Refusal(403, f"That member cannot see #{channel.name}.")
    if not granted & permissions.SEND_MESSAGES:
        raise Refusal(403, f"You do not have permission to send messages in #{channel.name}.")
    content = _TYPED.sub(lambda found: _as_mention(discord, guild, found), text.strip())
    if not 1 <= len(content) <= LONGEST:
        raise Refusal(400, f"A message has 1 to {LONGEST} characters.")
    message = Message(discord.world.ids.next(), channel.id, member.user_id, content, now_iso())
    message.mentions = [shapes.user(user) for user in _mentioned(discord, content)]
    posted(discord, message)
    return message


def _mentioned(discord: Discord, content: str) -> Sequence[User]:
    """Return the users whom a text mentions."""
    ids = dict.fromkeys(_CALLED.findall(content))
    return [discord.world.users[id_] for id_ in ids if id_ in discord.world.users]


def _set_mentions(discord: Discord, message: Message, allowed: Form | None) -> None:
    """Set the mentions of a bot's message, as far as `allowed_mentions` and the bot's permissions allow.

    Without `allowed_mentions` an interaction's answer mentions only users; another message mentions everybody it names.
    """
    if allowed is None:
        allowed = {"parse": ["users"] if message.webhook_id else ["users", "roles", "everyone"]}
    message.mentions = [
        shapes.user(user) for user in _mentioned(discord, message.content) if _lets(allowed, "users", user.id)
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


def _as_mention(discord: Discord, guild: Guild, found: re.Match[str]) -> str:
    user = discord.user_called(found[1])
    return f"<@{user.id}>" if user is not None and user.id in guild.members else found[0]


def posted(discord: Discord, message: Message) -> None:
    """Put a message into its channel.

    An ephemeral message, or one in a direct message, is only remembered with its interaction.
    """
    if message.flags & EPHEMERAL or message.channel_id not in discord.world.channels:
        return
    channel = discord.world.channels[message.channel_id]
    channel.last_message_id = message.id
    discord.world.save(channel, message)
    _tell(discord, "MESSAGE_CREATE", message)


def edited(discord: Discord, message: Message) -> None:
    """Save an edited message."""
    message.edited_timestamp = now_iso()
    if not message.flags & EPHEMERAL and message.channel_id in discord.world.channels:
        discord.world.save(message)
        _tell(discord, "MESSAGE_UPDATE", message)


def deleted(discord: Discord, message: Message) -> None:
    """Delete a message."""
    if message.flags & EPHEMERAL or message.channel_id not in discord.world.channels:
        return
    discord.world.remove(message)
    guild_id = discord.world.channels[message.channel_id].guild_id
    event = {"id": message.id, "channel_id": message.channel_id, "guild_id": guild_id}
    discord.gateway.dispatch(guild_id, "MESSAGE_DELETE", event, intents.GUILD_MESSAGES)


def shown(discord: Discord, message: Message) -> dict[str, Any]:
    """Return the message as its channel shows it; a reply includes the message that it answers, or null."""
    users = discord.world.users
    shape = shapes.message(message, users[message.author_id])
    if message.replies_to is None:
        return shape
    answered = discord.world.messages[message.channel_id].get(message.replies_to)
    return {**shape, "referenced_message": answered and shapes.message(answered, users[answered.author_id])}


def _tell(discord: Discord, event: str, message: Message) -> None:
    guild = discord.world.guilds[discord.world.channels[message.channel_id].guild_id]
    author = discord.world.users[message.author_id]
    data: dict[str, Any] = {**shown(discord, message), "guild_id": guild.id}
    if author.id != discord.bot_id and all(one["id"] != discord.bot_id for one in message.mentions):
        # Without the message content intent the bot reads only its own messages and those that mention it.
        data |= {"content": "", "embeds": [], "components": []}
    if member := guild.members.get(author.id):
        partial = shapes.member(member, author)
        del partial["user"]
        data["member"] = partial
    discord.gateway.dispatch(guild.id, event, data, intents.GUILD_MESSAGES)
