"""One random history of a server: its members, its rules, the processes of the product, and the passing of time."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from time import monotonic
from types import SimpleNamespace
from typing import cast

import pytest
from sqlalchemy import text
from sqlmodel import select

import jobs.role_writer
from gateways import Gateways
from jobs.role_writer import RoleWriter
from models import Grant, Rule, Server, User, transaction
from models.db.future_times import corrections
from models.db.session import AsyncSession
from services.core.actors import Actor
from services.core.errors import HoldfastError
from services.engine import reconcile
from services.engine.reconcile_outcome import BatchOutcome
from services.guilds import permissions, rivals
from services.guilds.members import MemberFacts
from services.roles import breaker
from services.roles.moves import lifecycle
from services.rules import pausing
from services.rules.expression import AtLeast, Expression, Not, Requirement, parse
from services.rules.rule_rows import set_expression
from services.rules.types.address_list import AddressList
from services.runtime import rate_limits
from tests.services.roles.histories.discord import BRONZE, GOLD, NAMES, SILVER, SimulatedDiscord
from tests.services.roles.histories.truth import Decision, Truth
from tests.support.builders import a_member, a_rule, a_server, address

LISTS = ("1" * 32, "2" * 32)
"""Two lists of addresses, by their digests: being on a list stands for holding something."""
_ONE, _OTHER = (Requirement("address_list", "", "", details=AddressList(digest, 9)) for digest in LISTS)
TREES: Mapping[str, Expression] = {
    "on list 1": _ONE, "on list 2": _OTHER, "on either list": AtLeast(1, (_ONE, _OTHER)),
    "on list 1 and not on list 2": AtLeast(2, (_ONE, Not(_OTHER))), "not on list 2": Not(_OTHER),
}  # fmt: skip
"""What rules ask for, in words."""
MEMBERS, MORE_WALLETS = 4, 3
READ_AT: ContextVar[int] = ContextVar("READ_AT")
"""The step in which the running reconcile began to read."""


@dataclass
class Hold:
    """A reconcile that has decided waits here before it writes."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)


HOLD: ContextVar[Hold | None] = ContextVar("HOLD", default=None)
"""Where the running reconcile is held up, if it is."""


class Unlimited:
    """Counts of requests without a limit: a history makes in seconds what people do in days."""

    async def spend(self, key: str, per_minute: float) -> float:
        return 0.0


class History:
    """A server with four members, two roles and four rules about two lists, and all that happened to it."""

    def __init__(self, seed: int, check: "Callable[[History, str, str], Awaitable[None]]") -> None:
        """`check` is called for each removal of a role that arrives at Discord, with the member and the role."""
        self.random = Random(seed)
        self.step = 0
        self.lines: list[str] = []
        """Everything that happened; the lines of one step begin with its number."""
        self.discord = SimulatedDiscord(self.say, lambda who, role: check(self, who, role), self._given_twice)
        chains = SimpleNamespace(costly=lambda _: frozenset[str](), endpoints=lambda _: 0, is_silent=lambda _: False)
        self.outside = cast("Gateways", SimpleNamespace(discord=self.discord, chains=chains))
        self.admin = Actor(0, self.discord.owner, "owner")
        self.wrong: list[str] = []
        """Removals that should not have been sent."""
        self.people: list[str] = []
        self.wallets: list[str] = []
        """The wallets that members may prove, one of each member first."""
        self.rules: list[int] = []
        self.list_ids: dict[str, int] = {}
        self.unreadable: set[str] = set()
        """Lists that cannot be read just now."""
        self.decisions: dict[tuple[str, str], Decision] = {}
        """When the latest removal was decided, by member and role."""
        self.moved_by_others: set[tuple[str, str]] = set()
        """Members and roles that somebody else took or gave."""
        self.reconciles: list[tuple[asyncio.Task[None], Hold]] = []
        """The reconciles that are held up."""
        self.writes: dict[asyncio.Task[None], int] = {}
        """The role changes that wait for Discord, each with the id of its grant."""
        self.former_writes: set[asyncio.Task[None]] = set()
        """Those of them that a process had begun from which another one has taken over."""
        self.late_events: list[MemberFacts] = []
        """Members as they were when Discord wrote an event that has not arrived yet."""
        self.last_jump = monotonic()
        """When time was last made to pass (monotonic)."""

    def _given_twice(self, who: str, role: str) -> None:
        self.say("    WRONG: the member has it from us")
        self.wrong.append(f"{NAMES[role]} was given to {self.name(who)} twice")

    def say(self, line: str) -> None:
        self.lines.append(f"{self.step:4} {line}")

    def name(self, who: str) -> str:
        return f"member {self.people.index(who)}"

    def anybody(self) -> str:
        return self.random.choice(self.people)

    @property
    def is_held_up(self) -> bool:
        """Whether a reconcile or a role change waits in the middle."""
        return bool(self.reconciles or self.writes)

    # The beginning.

    async def begin(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make the server with its rules, and let the product use the simulated Discord."""
        monkeypatch.setattr(jobs.role_writer, "gateways", lambda: self.outside)
        monkeypatch.setattr(permissions, "own_guilds", self.discord.own_guilds)
        monkeypatch.setattr(rate_limits, "_counts", Unlimited())
        # Of four members, five never lose a role within a day.
        monkeypatch.setattr(breaker, "MOST_PEOPLE", 1)
        self._hold_reconciles(monkeypatch)
        async with transaction() as db:
            server = await a_server(db)
            server.discord_id, server.owner_id = self.discord.id, self.discord.owner
            db.add(server)
            self.server = server.id or 0
            for digest in LISTS:
                stored = await db.execute(
                    text(
                        "INSERT INTO address_list (server_id, digest, count, used_at) "
                        "VALUES (:server, :digest, 9, now()) RETURNING id"
                    ),
                    {"server": self.server, "digest": digest},
                )
                self.list_ids[digest] = stored.scalar_one()
            for _ in range(MEMBERS):
                wallet = address()
                who = (await a_member(db, server, wallet=wallet)).discord_id
                self.people.append(who)
                self.wallets.append(wallet)
                self.discord.add(who)
            await self._rules(db, server)
        own = dict(zip(self.people, self.wallets, strict=True))
        self.wallets += [address() for _ in range(MORE_WALLETS)]
        self.truth = Truth(self.people, LISTS, self.wallets)
        for who, wallet in own.items():
            self.truth.gives(wallet, who, 0)
        await self.restart()

    async def _rules(self, db: AsyncSession, server: Server) -> None:
        wanted = [
            (GOLD, "on list 1", 0), (GOLD, "on list 2", 0),
            (SILVER, "on list 2", 1), (SILVER, "on list 1 and not on list 2", 0),
        ]  # fmt: skip
        for role, words, hours in wanted:
            rule = await a_rule(db, server, role)
            self._fill(rule, TREES[words], hours)
            db.add(rule)
            self.rules.append(rule.id or 0)
        # A list is deleted with the last rule that uses it. This rule gives nothing, and keeps both lists.
        self._fill(await a_rule(db, server, BRONZE, state="shadow"), TREES["on either list"], 0)

    @staticmethod
    def _fill(rule: Rule, tree: Expression, hours: int) -> None:
        set_expression(rule, tree)
        rule.role_name = NAMES[rule.role_id]
        rule.removal_mode, rule.removal_hours = "grace" if hours else "now", hours

    def _hold_reconciles(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let reconciles wait between their decisions and their writing, and note from when a removal's reading is."""
        settle = reconcile._settle

        async def settled(worker: str, done: BatchOutcome) -> int:
            for item in done.outcomes:
                made = [f"{one.action.value} {NAMES[one.role_id]} {[*one.rule_ids]}" for one in item.decisions]
                self.say(f"    decided about {self.name(item.case.claim.discord_id)}: {', '.join(made) or 'nothing'}")
            if (hold := HOLD.get()) is not None:
                hold.reached.set()
                await hold.opened.wait()
            async with transaction() as db:
                began = await db.now()
            written = await settle(worker, done)
            async with transaction() as db:
                taken = select(Grant.discord_id, Grant.role_id).where(
                    Grant.state == "taking", Grant.updated_at >= began
                )
                begun = (await db.exec(taken)).all()
            self.decisions |= dict.fromkeys(begun, Decision(READ_AT.get(), self.step))
            return written

        monkeypatch.setattr(reconcile, "_settle", settled)

    async def restart(self) -> None:
        """Start the role writer again: it holds the lease from now on, and does not know what was sent before."""
        self.writer = RoleWriter(asyncio.Event())
        async with transaction() as db:
            self.lease_since = await db.now()

    # What steps need.

    async def change(self, said: str, what: Callable[[AsyncSession], Awaitable[object]]) -> bool:
        """Let somebody change something in one transaction; return whether the product let them."""
        try:
            async with transaction() as db:
                await what(db)
        except HoldfastError as refused:
            self.say(f"  {said}: {type(refused).__name__}")
            return False
        self.say(f"  {said}")
        return True

    async def account(self, db: AsyncSession, who: str) -> Actor | None:
        """Return the member with their account, or None for one who never signed in or was forgotten."""
        user = (await db.exec(select(User).where(User.discord_id == who))).first()
        return None if user is None else Actor(user.id or 0, who, who)

    async def living_rules(self, db: AsyncSession) -> list[tuple[Rule, Expression]]:
        """Return the rules that are not deleted, in shadow or not."""
        rows = await db.exec(select(Rule).where(Rule.server_id == self.server).order_by("id"))
        return [(rule, parse(rule.expression)) for rule in rows.all() if rule.deleted_at is None]

    async def pass_time(self, seconds: int) -> None:
        """Move everything stored back by so many seconds, less the time that has really passed since the last call.

        At least half of the seconds pass, however long that was.

        No role change may be held up: the role writer knows it by the time at which it was intended.
        """
        assert not self.writes
        self.say(f"  {seconds} s pass")
        now = monotonic()
        by = timedelta(seconds=seconds - min(now - self.last_jump, seconds / 2))
        self.last_jump = now
        self.lease_since -= by
        self.discord.joined = {who: at - by for who, at in self.discord.joined.items()}
        if seconds >= 60:
            self.discord.late.clear()
        await self._move_times(-by)
        # What the scheduler does now and then.
        async with transaction() as db:
            await db.together(*corrections())
            await breaker.clear(db)
            await pausing.retry_refused(db)
            await rivals.end_expired(db)
            await lifecycle.begin_due(db)

    async def set_clock_back(self, seconds: int) -> None:
        """Set the database's clock back. Nothing may be held up: a process knows times from before."""
        assert not self.is_held_up
        self.say(f"  the clock is set back by {seconds} s")
        self.lease_since += timedelta(seconds=seconds)
        await self._move_times(timedelta(seconds=seconds))

    async def _move_times(self, by: timedelta) -> None:
        async with transaction() as db:
            (columns,) = await db.together((TIMES, {}))
            tables: dict[str, list[str]] = {}
            for table, column in columns:
                tables.setdefault(table, []).append(f"{column} = {column} + CAST(:by AS interval)")
            for table, sets in tables.items():
                await db.execute(text(f'UPDATE "{table}" SET {", ".join(sets)}'), {"by": by})

    async def short_pauses_end(self) -> None:
        """End the pauses of seconds, so that it does not matter how many seconds a history takes."""
        async with transaction() as db:
            for table, column in (("grant", "next_at"), ("due", "due_at")):
                soon = f"{column} > now() AND {column} < now() + interval '{SHORT_SECONDS} seconds'"
                await db.execute(text(f'UPDATE "{table}" SET {column} = now() WHERE {soon}'))


SHORT_SECONDS = 25
"""Between the pauses of the product: 20 and 40 s before a reconcile, 16 and 30 s before a role change."""
TIMES = """
    SELECT c.table_name, c.column_name FROM information_schema.columns c
    JOIN pg_class t ON t.relname = c.table_name AND t.relnamespace = to_regnamespace(c.table_schema)
    WHERE c.table_schema = current_schema() AND c.data_type = 'timestamp with time zone'
    AND t.relkind IN ('r', 'p') AND NOT t.relispartition ORDER BY 1, 2
"""
"""All times that the database stores, by table and column."""

Step = Callable[[History], Awaitable[None]]
