"""A Discord server in this process, whose answer to each role change a history chooses and can hold back."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from gateways.discord.types import BotUser, Guild, GuildMember, Role, UserGuild, refusal
from gateways.transport.errors import ProviderDown
from services.guilds.members import MemberFacts, facts_from
from services.guilds.role_safety import ADMINISTRATOR, MANAGE_ROLES
from services.triggers.gateway_events import GuildFacts, RoleFacts
from tests.support.builders import snowflake

GOLD, SILVER, BRONZE = "701", "702", "703"
ROLES = (GOLD, SILVER)
"""The roles that rules give; BRONZE only has a rule in shadow."""
NAMES = {GOLD: "gold", SILVER: "silver", BRONZE: "bronze"}
BOT_ROLE = "709"
MEMBERSHIP = timedelta(days=3)
"""How long members have been there when a history begins."""


class Reply(StrEnum):
    """What Discord does with a role change."""

    DONE = "done"
    UNANSWERED = "done without an answer"
    LOST = "neither done nor answered"
    LATE = "not answered, and perhaps done later"
    REFUSED = "refused"
    BLIND = "no member can be read"


@dataclass(eq=False)
class Request:
    """A role change, or the reading of a member before it, that has arrived at Discord and is not answered yet."""

    who: str
    role: str
    """Empty for a reading."""
    give: bool
    reply: asyncio.Future[Reply]
    task: asyncio.Task[None] | None
    """The attempt of the role writer that waits for the answer."""


class SimulatedDiscord:
    """One guild with its members. The owner and the bot are not among the members whom rules concern."""

    def __init__(
        self,
        say: Callable[[str], None],
        check: Callable[[str, str], Awaitable[None]],
        given_twice: Callable[[str, str], None],
    ) -> None:
        self.id, self.owner, self.bot = snowflake(), snowflake(), snowflake()
        self.say, self.check = say, check
        """`check` is called for each DELETE of a role, when it arrives."""
        self.given_twice = given_twice
        """Called for a PUT that arrives although the member has the role because of one that was answered."""
        self.given: set[tuple[str, str]] = set()
        """The members and roles of PUTs that were answered; nobody has changed the role since."""
        self.roles_of: dict[str, set[str]] = {}
        """The present members and their roles."""
        self.joined: dict[str, datetime] = {}
        self.pending: set[str] = set()
        """The members who have not passed the server's screening."""
        self.deleted: set[str] = set()
        """The roles that do not exist at present."""
        self.reply = Reply.DONE
        """The answer to requests that are not held."""
        self.holds = self.holds_readings = False
        """Whether role changes, and the readings before them, wait for an answer of their own."""
        self.held: list[Request] = []
        self.arrived = asyncio.Event()
        """Set when a request arrives that waits."""
        self.late: list[tuple[str, str, bool]] = []
        """Role changes without an answer that may still be carried out: member, role, and whether it gives."""
        bits = ADMINISTRATOR | MANAGE_ROLES
        self._every_role = (
            *(Role(one, name, 0, place, False, 0) for place, (one, name) in enumerate(NAMES.items(), 1)),
            Role(BOT_ROLE, "bot", 0, 50, False, bits),
        )

    @property
    def _roles(self) -> tuple[Role, ...]:
        return tuple(one for one in self._every_role if one.id not in self.deleted)

    def delete(self, role: str) -> None:
        """Delete a role: nobody has it any more."""
        self.deleted.add(role)
        self.given = {one for one in self.given if one[1] != role}
        for roles in self.roles_of.values():
            roles.discard(role)

    def is_asked_about(self, role: str) -> bool:
        """Return whether a change of the role is held, or may be carried out late."""
        return any(one.role == role for one in self.held) or any(one == role for _, one, _ in self.late)

    def add(self, who: str) -> None:
        """Add a member who has been there for days."""
        self.roles_of[who], self.joined[who] = set(), datetime.now(UTC) - MEMBERSHIP

    def facts(self, who: str) -> MemberFacts:
        """Return a member as events show them."""
        return facts_from(self._member(who))

    def guild_facts(self) -> GuildFacts:
        """Return the guild as the gateway shows it."""
        roles = tuple(RoleFacts(one.id, one.name, one.position, False, one.permissions) for one in self._roles)
        bot = facts_from(self._member(self.bot))
        return GuildFacts(self.id, "A server", None, self.owner, self.bot, roles, (bot,), len(self.roles_of))

    def apply(self, who: str, role: str, *, give: bool) -> None:
        """Carry out a role change, unless the member has left."""
        if who in self.roles_of and role not in self.deleted:
            (self.roles_of[who].add if give else self.roles_of[who].discard)(role)
            self.given.discard((who, role))
            self.say(f"    Discord {'gives' if give else 'takes'} {NAMES[role]}")

    def _member(self, who: str) -> GuildMember:
        roles = frozenset({BOT_ROLE} if who == self.bot else self.roles_of.get(who, ()))
        return GuildMember(
            who, who, None, None, None, roles, pending=who in self.pending, bot=who == self.bot,
            joined_at=self.joined.get(who), read_at=datetime.now(UTC),
        )  # fmt: skip

    # What the product calls.

    async def me(self) -> BotUser:
        return BotUser(self.bot, "holdfast", None, None, bot=True)

    async def guild(self, guild_id: str) -> Guild:
        return Guild(guild_id, "A server", None, self.owner, self._roles)

    async def own_guilds(self, *_: object, **__: object) -> list[UserGuild]:
        return [UserGuild(self.id, "A server", None, owner=True, permissions=0)]

    async def roles(self, guild_id: str) -> tuple[Role, ...]:
        return self._roles

    async def member(self, guild_id: str, who: str) -> GuildMember:
        return self._member(who)

    async def membership(self, guild_id: str, who: str) -> GuildMember | None:
        reply = await self._held(who) if self.holds_readings else self.reply
        if reply is Reply.BLIND:
            raise ProviderDown("Discord", "no answer")
        return self._member(who) if who in self.roles_of else None

    async def add_role(self, guild_id: str, who: str, role: str, reason: str) -> None:
        await self._change(who, role, give=True)

    async def remove_role(self, guild_id: str, who: str, role: str, reason: str) -> None:
        await self.check(who, role)
        await self._change(who, role, give=False)

    async def _change(self, who: str, role: str, *, give: bool) -> None:
        if give and (who, role) in self.given:
            self.given_twice(who, role)
        reply = await self._held(who, role, give=give) if self.holds else self.reply
        if reply is Reply.REFUSED:
            raise refusal(403, {"code": 50013, "message": "Missing Permissions"})
        if reply is Reply.LATE:
            self.late.append((who, role, give))
        if reply in {Reply.LOST, Reply.LATE}:
            raise ProviderDown("Discord", "no answer")
        if who not in self.roles_of:
            raise refusal(404, {"code": 10007, "message": "Unknown Member"})
        if role in self.deleted:
            raise refusal(404, {"code": 10011, "message": "Unknown Role"})
        self.apply(who, role, give=give)
        if reply is Reply.UNANSWERED:
            raise ProviderDown("Discord", "no answer")
        if give:
            self.given.add((who, role))

    async def _held(self, who: str, role: str = "", *, give: bool = False) -> Reply:
        """Hold the request until the history answers it."""
        loop = asyncio.get_running_loop()
        request = Request(who, role, give, loop.create_future(), asyncio.current_task())
        self.held.append(request)
        self.arrived.set()
        return await request.reply
