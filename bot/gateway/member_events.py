"""Events about members, applied in order within each guild; events of unknown people are dropped in bulk."""

from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bot.gateway.guild_turns import GuildTurns
from services.guilds.gateway import known_people
from services.guilds.gateway.known_people import ReportedMember
from services.guilds.members import MemberFacts


@dataclass(frozen=True, slots=True)
class MemberEvent:
    """An event about a member: their facts (None for one who left), and whether they joined."""

    discord_id: str
    facts: MemberFacts | None
    joined: bool
    is_admin: bool = False
    """Whether one of their roles makes them an administrator."""


class MemberEvents:
    """A collector of events about members while their guild's turn is taken; it drops events of unknown people."""

    def __init__(self, turns: GuildTurns, apply: Callable[[int, MemberEvent], Awaitable[None]]) -> None:
        self._turns: GuildTurns = turns
        self._apply: Callable[[int, MemberEvent], Awaitable[None]] = apply
        self._waiting: defaultdict[int, list[MemberEvent]] = defaultdict(list)
        """By guild, the events that wait for its turn."""

    async def add(self, guild_id: int, event: MemberEvent) -> None:
        """Pass on one event; when this returns, it is written or dropped."""
        self._waiting[guild_id].append(event)
        async with self._turns.of(guild_id):
            # The first caller to get the turn passes on all waiting events; the others find none left.
            events = self._waiting.pop(guild_id, [])
            if events:
                await self._pass_on(guild_id, events)

    async def _pass_on(self, guild_id: int, events: list[MemberEvent]) -> None:
        guild = str(guild_id)
        asked = [ReportedMember(guild, one.discord_id, one.facts.roles if one.facts else ()) for one in events]
        strangers = await self._turns.write(lambda db: known_people.strangers(db, asked))
        # A person who becomes known by one of the events is known in all of them.
        known = {one.discord_id for place, one in enumerate(events) if place not in strangers or one.is_admin}
        faults: list[Exception] = []
        for event in events:
            if event.discord_id not in known:
                continue
            try:
                await self._apply(guild_id, event)
            except Exception as fault:  # noqa: BLE001  other people's events do not depend on it
                faults.append(fault)
        if faults:
            raise ExceptionGroup(f"events of members of guild {guild}", faults)
