"""A guild like those of large communities: every kind of channel, threads, roles that Discord gives, emojis, events.

Each field is as in Discord's OpenAPI description and its gateway pages. Old clients fail on exactly those fields that a
stand-in usually leaves out.
"""

from typing import Any

from sandbox.discord.actions import channels, members, roles
from sandbox.discord.actions.roles import RoleEdit
from sandbox.discord.world import intents, shapes
from sandbox.discord.world.audit import By
from sandbox.discord.world.entities import Channel, Guild
from sandbox.discord.world.protocols import Discord
from sandbox.discord.world.snowflakes import now_iso

Json = dict[str, Any]

FEATURES = (
    "ANIMATED_BANNER", "ANIMATED_ICON", "AUTO_MODERATION", "BANNER", "COMMUNITY", "DISCOVERABLE", "INVITE_SPLASH",
    "MEMBER_VERIFICATION_GATE_ENABLED", "NEWS", "PREVIEW_ENABLED", "ROLE_ICONS", "VANITY_URL",
    "WELCOME_SCREEN_ENABLED",
)  # fmt: skip
CATEGORY, VOICE, ANNOUNCEMENTS, STAGE, FORUM, MEDIA = 4, 2, 5, 13, 15, 16
EXPRESSIONS = 1 << 3
"""The intent for emojis and stickers."""
HASH = "a_" + "0123456789abcdef" * 2

_OF_A_FORUM: Json = {
    "available_tags": [
        {"id": "1180000000000000001", "name": "Sold", "moderated": False, "emoji_id": None, "emoji_name": "💸"},
        {"id": "1180000000000000002", "name": "Rare", "moderated": True, "emoji_id": None, "emoji_name": None},
    ],
    "default_reaction_emoji": {"emoji_id": None, "emoji_name": "🔥"},
    "default_sort_order": None,
    "default_forum_layout": 0,
    "default_auto_archive_duration": 4320,
    "default_thread_rate_limit_per_user": 5,
    "template": "",
}
_CHANNELS: tuple[tuple[str, int, Json], ...] = (
    (
        "rules",
        0,
        {"default_auto_archive_duration": 1440, "icon_emoji": {"id": None, "name": "📜"}, "theme_color": None},
    ),
    ("news", ANNOUNCEMENTS, {"default_auto_archive_duration": 4320}),
    ("Lounge", VOICE, {"status": "music tonight"}),
    ("Town Hall", STAGE, {}),
    ("ideas", FORUM, _OF_A_FORUM),
    ("gallery", MEDIA, {**_OF_A_FORUM, "default_forum_layout": 2}),
)
_GRADIENT: Json = {"primary_color": 0xFF0000, "secondary_color": 0x00FF00, "tertiary_color": None}
_HOLOGRAPHIC: Json = {"primary_color": 11127295, "secondary_color": 16759788, "tertiary_color": 16761760}
_ROLES: tuple[tuple[str, dict[str, str | None], Json], ...] = (
    ("Server Booster", {"premium_subscriber": None}, {"icon": HASH[2:]}),
    ("Rival Bot", {"bot_id": "1180000000000000077"}, {}),
    ("Twitch Subscriber", {"integration_id": "1180000000000000078"}, {}),
    ("Patron", {
        "integration_id": "1180000000000000079", "subscription_listing_id": "1180000000000000080",
        "available_for_purchase": None,
    }, {}),
    ("Linked Wallet", {"guild_connections": None}, {}),
    ("Sunset", {}, {"color": 0xFF0000, "colors": _GRADIENT, "unicode_emoji": "🌇"}),
    ("Hologram", {}, {"color": 11127295, "colors": _HOLOGRAPHIC, "flags": 1}),
)  # fmt: skip


def enrich(discord: Discord, guild: Guild, by: By, member_count: int | None) -> None:
    """Give a guild all of it, step by step as its people could; `member_count` is the size that Discord reports."""
    for name, tags, more in _ROLES:
        role = roles.create(discord, guild, RoleEdit(name, 0, tags=tags), by)
        role.extras = more
        roles.change(discord, role, RoleEdit(), by)
    made = _channels(discord, guild)
    _members(discord, guild)
    _guild(discord, guild, made, member_count)


def _channels(discord: Discord, guild: Guild) -> dict[str, Channel]:
    next_id = discord.world.ids.next
    category = Channel(next_id(), guild.id, "Community", CATEGORY, position=1)
    channels.opened(discord, category)
    made: dict[str, Channel] = {}
    for position, (name, kind, more) in enumerate(_CHANNELS):
        channel = Channel(next_id(), guild.id, name, kind, position, parent_id=category.id, extras=more)
        if kind in (FORUM, MEDIA):
            channel.topic = "Post here"
        channels.opened(discord, channel)
        made[name] = channel
    return made


def _members(discord: Discord, guild: Guild) -> None:
    """Give the owner a guild avatar and a boost, and another member the flags of a guest who came by an invitation."""
    owner, *others = (member for member in guild.members.values() if member.user_id != discord.bot_id)
    owner.extras = {
        "avatar": HASH,
        "banner": HASH,
        "premium_since": now_iso(),
        "avatar_decoration_data": {"asset": HASH, "sku_id": "1180000000000000090", "expires_at": None},
        "flags": 1 << 1,
    }
    for member in [owner, *others[:1]]:
        member.extras = member.extras or {"flags": 1 << 0 | 1 << 4}
        members.changed(discord, member)


def _guild(discord: Discord, guild: Guild, made: dict[str, Channel], member_count: int | None) -> None:
    next_id = discord.world.ids.next
    creator = shapes.user(discord.world.users[guild.owner_id])
    emoji = {"require_colons": True, "managed": False, "roles": [], "user": creator, "available": True}
    sticker: Json = {
        "id": next_id(), "name": "gm", "tags": "wave", "type": 2, "format_type": 1, "description": None,
        "available": True, "guild_id": guild.id, "user": creator,
    }  # fmt: skip
    guild.extras = {
        "description": "Holders and friends",
        "features": list(FEATURES),
        "banner": HASH,
        "splash": HASH[2:],
        "discovery_splash": HASH[2:],
        "system_channel_id": next(iter(guild.channels)),
        "rules_channel_id": made["rules"].id,
        "public_updates_channel_id": made["news"].id,
        "safety_alerts_channel_id": made["news"].id,
        "afk_channel_id": made["Lounge"].id,
        "afk_timeout": 900,
        "verification_level": 4,
        "explicit_content_filter": 2,
        "premium_tier": 3,
        "premium_subscription_count": 14,
        "premium_progress_bar_enabled": True,
        "vanity_url_code": f"club{guild.id[-6:]}",
        "preferred_locale": "pt-BR",
        "nsfw_level": 3,
        "incidents_data": {"invites_disabled_until": None, "dms_disabled_until": None},
        "emojis": [
            {"id": next_id(), "name": "gm", "animated": False, **emoji},
            {"id": next_id(), "name": "wagmi", "animated": True, **emoji, "available": False},
        ],
        "stickers": [sticker],
    }
    guild.live = {
        "threads": [_thread(discord, guild, made["ideas"], 11), _thread(discord, guild, made["news"], 10)],
        "voice_states": [_in_call(guild, made["Lounge"])],
        "stage_instances": [
            {
                "id": next_id(), "guild_id": guild.id, "channel_id": made["Town Hall"].id, "topic": "Mint day",
                "privacy_level": 2, "discoverable_disabled": False, "guild_scheduled_event_id": None,
            }
        ],
        "guild_scheduled_events": [
            _event(discord, guild, None, "The old harbour"), _event(discord, guild, made["Town Hall"], None),
        ],
        "soundboard_sounds": [
            {
                "sound_id": next_id(), "name": "Airhorn", "volume": 0.7, "emoji_id": None, "emoji_name": "📣",
                "guild_id": guild.id, "available": True, "user": creator,
            }
        ],
    }  # fmt: skip
    if member_count is not None:
        guild.live["member_count"] = member_count
    discord.world.save(guild)
    tell = discord.gateway.dispatch
    tell(guild.id, "GUILD_UPDATE", shapes.guild(guild), intents.GUILDS)
    tell(guild.id, "GUILD_EMOJIS_UPDATE", {"guild_id": guild.id, "emojis": guild.extras["emojis"]}, EXPRESSIONS)
    tell(guild.id, "GUILD_STICKERS_UPDATE", {"guild_id": guild.id, "stickers": guild.extras["stickers"]}, EXPRESSIONS)
    for thread in guild.live["threads"]:
        tell(guild.id, "THREAD_CREATE", {**thread, "newly_created": True}, intents.GUILDS)
    for stage in guild.live["stage_instances"]:
        tell(guild.id, "STAGE_INSTANCE_CREATE", stage, intents.GUILDS)


def _thread(discord: Discord, guild: Guild, parent: Channel, kind: int) -> Json:
    thread: Json = {
        "id": discord.world.ids.next(), "type": kind, "guild_id": guild.id, "parent_id": parent.id,
        "owner_id": guild.owner_id, "name": "Where is the next drop?", "last_message_id": None, "flags": 0,
        "rate_limit_per_user": 0, "message_count": 3, "member_count": 2, "total_message_sent": 4,
        "thread_metadata": {
            "archived": False, "archive_timestamp": now_iso(), "auto_archive_duration": 4320, "locked": False,
            "create_timestamp": now_iso(),
        },
    }  # fmt: skip
    return {**thread, "applied_tags": ["1180000000000000002"]} if parent.type == FORUM else thread


def _in_call(guild: Guild, channel: Channel) -> Json:
    return {
        "channel_id": channel.id, "user_id": guild.owner_id, "session_id": "5e" * 16, "deaf": False, "mute": False,
        "self_deaf": False, "self_mute": True, "self_video": False, "self_stream": True, "suppress": False,
        "request_to_speak_timestamp": None,
    }  # fmt: skip


def _event(discord: Discord, guild: Guild, channel: Channel | None, place: str | None) -> Json:
    return {
        "id": discord.world.ids.next(), "guild_id": guild.id, "channel_id": channel.id if channel else None,
        "creator_id": guild.owner_id, "name": "Meeting", "description": None, "image": None,
        "scheduled_start_time": "2030-01-01T18:00:00+00:00",
        "scheduled_end_time": "2030-01-01T20:00:00+00:00" if place else None,
        "privacy_level": 2, "status": 1, "entity_type": 3 if place else 1, "entity_id": None,
        "entity_metadata": {"location": place} if place else None, "sku_ids": [], "user_count": 7,
        "creator": shapes.user(discord.world.users[guild.owner_id]), "recurrence_rule": None, "auto_start": False,
        "guild_scheduled_event_exceptions": [],
    }  # fmt: skip
