"""The Discord world in memory, and its journal: every save and removal is one line, replayed at the start."""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

from sandbox.base.journal import Journal, Record
from sandbox.discord.world.application import Application
from sandbox.discord.world.entities import (
    AuditEntry,
    Channel,
    Command,
    Grant,
    Guild,
    Member,
    Message,
    Overwrite,
    Role,
    User,
)
from sandbox.discord.world.snowflakes import Snowflakes

Entity = Application | User | Guild | Role | Member | Channel | Message | Command | Grant | AuditEntry
SPARE = 100_000
"""The lines of history that a journal may have beside twice those of what exists, while it is open."""
AUDIT_KEPT = 10_000
"""The most entries of one guild's audit log. Discord keeps them for 45 days, however many they are."""


class World:
    """Everything that Discord remembers. Change an entity, then `save` it; `remove` an entity that is deleted."""

    def __init__(self) -> None:
        self.ids = Snowflakes()
        self.application = Application()
        self.users: dict[str, User] = {}
        self.guilds: dict[str, Guild] = {}
        self.channels: dict[str, Channel] = {}
        self.messages: dict[str, dict[str, Message]] = {}
        self.commands: dict[str, Command] = {}
        self.grants: dict[str, Grant] = {}
        self.audit: dict[str, dict[str, AuditEntry]] = {}
        """The entries of each guild by id, oldest first."""
        self._journal: Journal | None = None
        self._lines = 0
        self._room = SPARE

    def open(self, path: Path) -> None:
        """Replay the journal and write to it from now on; a journal that is mostly history is compacted."""
        journal = Journal(path)
        records = journal.records()
        for record in records:
            self._replay(record)
        self._journal, self._lines = journal, len(records)
        there = sum(1 for _ in self.entities())
        self._room = 2 * there + SPARE
        if self._lines > 2 * there + 1000:
            self.compact()

    def close(self) -> None:
        """Stop writing."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def compact(self) -> None:
        """Rewrite the journal with only what exists now."""
        if self._journal is not None:
            records = [_record(entity) for entity in self.entities()]
            self._journal.rewrite(records)
            self._lines, self._room = len(records), 2 * len(records) + SPARE

    def save(self, *entities: Entity) -> None:
        """Save new or changed entities; they are on disk before this returns."""
        for entity in entities:
            self._hold(entity)
        self._write([_record(entity) for entity in entities])

    def remove(self, *entities: Entity) -> None:
        """Delete entities; the deletion is on disk before this returns."""
        for entity in entities:
            self._drop(entity)
        self._write([{"gone": _kind(entity), **_record(entity)} for entity in entities])

    def _write(self, records: list[Record]) -> None:
        if self._journal is not None:
            self._journal.extend(records)
            self._lines += len(records)
            if self._lines > self._room:
                try:
                    self.compact()
                except OSError:
                    # The disk has no room for a second file. The records are in the first; later there may be room.
                    self._room += SPARE

    def entities(self) -> Iterator[Entity]:
        """Yield all entities, in an order in which they can be replayed."""
        yield self.application
        yield from self.users.values()
        for guild in self.guilds.values():
            yield guild
            yield from guild.roles.values()
            yield from guild.members.values()
            yield from guild.channels.values()
        for messages in self.messages.values():
            yield from messages.values()
        yield from self.commands.values()
        yield from self.grants.values()
        for entries in self.audit.values():
            yield from entries.values()

    def _replay(self, record: Record) -> None:
        entity = _entity(record)
        if "gone" in record:
            self._drop(entity)
        else:
            self._hold(entity)

    def _hold(self, entity: Entity) -> None:
        match entity:
            case Application():
                self.application = entity
            case User():
                self.users[entity.id] = entity
            case Guild():
                known = self.guilds.get(entity.id)
                if known is not None and known is not entity:
                    entity.roles, entity.members, entity.channels = known.roles, known.members, known.channels
                self.guilds[entity.id] = entity
            case Role():
                self.guilds[entity.guild_id].roles[entity.id] = entity
            case Member():
                self.guilds[entity.guild_id].members[entity.user_id] = entity
            case Channel():
                self.guilds[entity.guild_id].channels[entity.id] = entity
                self.channels[entity.id] = entity
                self.messages.setdefault(entity.id, {})
            case Message():
                self.messages[entity.channel_id][entity.id] = entity
            case Command():
                self.commands[entity.id] = entity
            case Grant():
                self.grants[entity.id] = entity
            case AuditEntry():
                entries = self.audit.setdefault(entity.guild_id, {})
                entries[entity.id] = entity
                while len(entries) > AUDIT_KEPT:
                    del entries[next(iter(entries))]

    def _drop(self, entity: Entity) -> None:
        match entity:
            case Application():
                self.application = Application()
            case User():
                self.users.pop(entity.id, None)
            case Guild():
                guild = self.guilds.pop(entity.id, None)
                self.audit.pop(entity.id, None)
                for command in [one.id for one in self.commands.values() if one.guild_id == entity.id]:
                    del self.commands[command]
                for channel in list(guild.channels) if guild else []:
                    self.channels.pop(channel, None)
                    self.messages.pop(channel, None)
            case Role():
                self.guilds[entity.guild_id].roles.pop(entity.id, None)
            case Member():
                self.guilds[entity.guild_id].members.pop(entity.user_id, None)
            case Channel():
                self.guilds[entity.guild_id].channels.pop(entity.id, None)
                self.channels.pop(entity.id, None)
                self.messages.pop(entity.id, None)
            case Message():
                self.messages.get(entity.channel_id, {}).pop(entity.id, None)
            case Command():
                self.commands.pop(entity.id, None)
            case Grant():
                self.grants.pop(entity.id, None)
            case AuditEntry():
                self.audit.get(entity.guild_id, {}).pop(entity.id, None)


_KINDS: dict[str, Callable[..., Entity]] = {kind.__name__.lower(): kind for kind in get_args(Entity)}


def _kind(entity: Entity) -> str:
    return type(entity).__name__.lower()


def _record(entity: Entity) -> Record:
    value: dict[str, Any] = {
        field.name: getattr(entity, field.name)
        for field in dataclasses.fields(entity)
        if not (isinstance(entity, Guild) and field.name in ("roles", "members", "channels"))
    }
    if isinstance(entity, Channel):
        value["overwrites"] = [vars(overwrite) for overwrite in entity.overwrites]
    return {"kind": _kind(entity), "value": value}


def _entity(record: Record) -> Entity:
    value = dict(record["value"])
    if record["kind"] == "channel":
        value["overwrites"] = [Overwrite(**overwrite) for overwrite in value["overwrites"]]
    return _KINDS[record["kind"]](**value)
