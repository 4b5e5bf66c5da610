"""The outbox: give or take one role at a time as the ledger says, and read the member first in case of doubt."""

import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from gateways import Gateways
from gateways.discord.types import (
    GuildGone,
    GuildMember,
    MemberGone,
    MissingAccess,
    MissingPermissions,
    RoleGone,
    TokenRejected,
)
from gateways.transport.errors import NotYet, ProviderBusy, ProviderError, ProviderRefused
from locales import ENGLISH, N_, _, speaking
from locales.stored_texts import storable
from models import GrantKey
from models.db.session import Question
from services.roles import breaker, in_doubt
from services.rules.rule_rows import newest_role_name
from services.runtime.retries import doubled

INTENT_CHANNEL = "holdfast_intent"
"""The NOTIFY channel for roles to give or take."""

STALE_AFTER = timedelta(seconds=60)
"""A removal that could not be sent for this long is decided again: the wallet may have been refilled."""

SCREENING_PAUSE = 60
"""Seconds until a role is tried again for somebody who has not passed the server's membership screening."""
FIRST_PAUSE, LONGEST_PAUSE, LONGEST_ODD_PAUSE = 2.0, 300, 30
"""Seconds. The whole guild pauses too, so a short pause of each change costs Discord no more requests."""

EACH = 4
"""The most concurrent changes of one guild: while Discord does not answer for it, other guilds still have places."""

PROTECTED = """
    ((g.role_id = ANY(s.protected_roles) OR g.discord_id = ANY(s.protected_members))
     AND NOT EXISTS (SELECT 1 FROM farewell f WHERE f.discord_id = g.discord_id))
"""
"""SQL condition on a grant `g` in a server `s`: an admin protects the role or the member, who did not ask to be
forgotten."""


@dataclass(frozen=True, slots=True)
class Intent:
    """A role to give to or take from one member, committed before any request to Discord."""

    id: int
    server_id: int
    guild_id: str
    discord_id: str
    role_id: str
    role_name: str
    giving: bool
    intended_at: datetime
    attempts: int
    evidence: dict[str, Any]
    gift: bool = False
    request_id: str | None = None
    age: timedelta = timedelta()
    """How long before the read it was written to the ledger, by the database's clock."""
    trial: bool = False
    """Whether Discord refused the role lately, so that this change shows whether it still does."""
    language: str = ENGLISH
    """The server's language, for the reason in its own audit log."""
    is_there: bool = False
    """Whether the member already has the role according to the gateway."""
    read_at: float = field(default_factory=time.monotonic)

    @property
    def line(self) -> GrantKey:
        """The key of the grant."""
        return GrantKey(self.server_id, self.discord_id, self.role_id)

    @property
    def never_given(self) -> bool:
        """Whether nobody has seen the member with the role that is to be taken."""
        return self.evidence.get("given") is False

    @property
    def since_read(self) -> timedelta:
        """The time since the ages were read."""
        return timedelta(seconds=time.monotonic() - self.read_at)

    @property
    def reason(self) -> str:
        """The reason for the server's own audit log."""
        with speaking(self.language):
            if self.giving:
                return _("Given back by an admin") if self.gift else _("Holds what the rule asks for")
            return _("No longer holds what the rules ask for")


class WriteResult(Enum):
    """The result of one change."""

    DONE = "done"
    ALREADY = "already"
    """The change had already happened, or was never needed."""
    WAIT = "wait"
    """Membership screening is not done, or Discord is failing: try again later."""
    NOT_YET = "not yet"
    """Discord's limit for the server is used up, or the change was read too long ago; nothing was sent or changes."""
    AGAIN = "again"
    """Too old to trust, cancelled, or about a role that somebody else took: decide again."""
    THEIRS = "theirs"
    """Somebody else gave the role before we sent anything, so it is not ours."""
    LEFT = "left"
    NO_ROLE = "no_role"
    REFUSED = "refused"
    NO_GUILD = "no_guild"


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    """The result of one change, the member if one was read, and the reason for a failure."""

    result: WriteResult
    member: GuildMember | None = None
    error: str | None = None
    pause: float | None = None
    unanswered: bool = False
    """Whether the role write was sent and is in doubt."""
    outage: bool = False
    """Whether Discord is failing, perhaps only for this guild."""
    code: int | None = None
    """Discord's code for a refusal."""
    asked_at: float = field(default_factory=time.monotonic, compare=False)
    """Before the first request, on this process's monotonic clock: what is said of the member may be older than what
    became known since."""


def question(limit: int, busy: Collection[int], resting: Collection[str] = (), after: int = 0) -> Question:
    """Return a query for up to `limit` due changes, one guild after another, starting after `after`.

    Each guild with something to do gets one turn before any gets its second; `after` is the id of the last server
    served. Excludes the changes in `busy`, the guilds in `resting` (Discord's ids), and guilds paused after too many
    refusals. Excludes members in membership screening (a role would complete it), roles whose rules are all paused, and
    removals that the breaker stopped. A role that Discord refused is tried with one change at a time; where no rule is
    left that a refusal could pause, a removal waits for the next try too.
    """
    return _OPEN, {
        "limit": limit, "busy": list(busy), "resting": list(resting), "after": after, "late": in_doubt.LATE,
        "each": min(limit, EACH),
    }  # fmt: skip


_IS_OPEN = "state IN ('giving', 'taking')"
_FREE = "(gift_since IS NOT NULL OR cardinality(rule_ids) = 0)"

GIFT_FIRST_SECONDS = 30
_GIFT_FIRST = f"""EXISTS (
    SELECT 1 FROM "grant" o WHERE o.server_id = g.server_id AND o.discord_id = g.discord_id AND o.state = 'giving'
    AND o.next_at <= now() AND o.intended_at > now() - interval '{GIFT_FIRST_SECONDS} seconds')"""
"""SQL condition: the member is about to get another role. It is given first, so that nobody is without a role between
two tiers. If it cannot be given, it delays a removal by at most GIFT_FIRST_SECONDS."""

# Open changes are found by index jumps from guild to guild, and within a guild from role to role, so the cost depends
# on the guilds served and not on the number of open lines.
_NEXT_GUILD = f"""SELECT server_id FROM "grant" WHERE {_IS_OPEN} AND server_id > {{}} ORDER BY server_id LIMIT 1"""
_NEXT_PART = f"""
    SELECT role_id, state, {_FREE} AS free FROM "grant" WHERE {_IS_OPEN} AND server_id = t.server_id {{}}
    ORDER BY role_id, state, {_FREE} LIMIT 1
"""
_FURTHER = f"AND (role_id, state, {_FREE}) > (p.role_id, p.state, p.free)"
_PART_IDS = f"""
    WITH RECURSIVE part AS (
        ({_NEXT_PART.format("")})
        UNION ALL
        SELECT n.* FROM part p, LATERAL ({_NEXT_PART.format(_FURTHER)}) n
    ), ready AS (
        SELECT p.*, f.role_id IS NOT NULL AS trial FROM part p
        LEFT JOIN role_refusal f ON f.server_id = t.server_id AND f.role_id = p.role_id
        WHERE CASE
            WHEN p.state = 'taking' THEN NOT EXISTS (
                SELECT 1 FROM breaker b WHERE b.server_id = t.server_id AND b.role_id = p.role_id
                AND {breaker.IS_WAITING})
                AND (COALESCE(f.next_at <= now(), true) OR EXISTS (SELECT 1 FROM rule r
                    WHERE r.server_id = t.server_id AND r.role_id = p.role_id AND r.deleted_at IS NULL
                    AND r.state = 'active'))
            WHEN p.free THEN COALESCE(f.next_at <= now(), true)
            ELSE EXISTS (SELECT 1 FROM rule r WHERE r.server_id = t.server_id AND r.role_id = p.role_id
                AND r.deleted_at IS NULL
                AND (r.state = 'active' OR (r.state = 'paused' AND r.pause_cause = 'refused' AND f.next_at <= now())))
            END
        AND NOT (f.role_id IS NOT NULL AND EXISTS (SELECT 1 FROM "grant" o WHERE o.id = ANY(CAST(:busy AS integer[]))
            AND o.server_id = t.server_id AND o.role_id = p.role_id))
    )
    SELECT w.id FROM ready p CROSS JOIN LATERAL (
        SELECT g.id, g.next_at FROM "grant" g
        WHERE g.state IN ('giving', 'taking') AND g.server_id = t.server_id AND g.role_id = p.role_id
        AND g.state = p.state AND (g.gift_since IS NOT NULL OR cardinality(g.rule_ids) = 0) = p.free
        AND g.next_at <= now() AND NOT g.id = ANY(CAST(:busy AS integer[]))
        AND NOT (g.state = 'giving' AND EXISTS (SELECT 1 FROM member m WHERE m.server_id = g.server_id
            AND m.discord_id = g.discord_id AND m.pending))
        AND NOT {in_doubt.STILL_OPEN} AND NOT (g.state = 'taking' AND {_GIFT_FIRST})
        ORDER BY g.next_at, g.id LIMIT CASE WHEN p.trial THEN 1 ELSE :each END
    ) w ORDER BY w.next_at, w.id LIMIT :each
"""
_OPEN = f"""
    WITH RECURSIVE ahead AS (
        ({_NEXT_GUILD.format(":after")})
        UNION ALL
        SELECT n.server_id FROM ahead a, LATERAL ({_NEXT_GUILD.format("a.server_id")}) n
    ), behind AS (
        ({_NEXT_GUILD.format("0")})
        UNION ALL
        SELECT n.server_id FROM behind a, LATERAL ({_NEXT_GUILD.format("a.server_id")}) n WHERE n.server_id <= :after
    ), chosen AS (
        SELECT t.server_id, w.ids FROM (
            SELECT server_id FROM ahead UNION ALL SELECT server_id FROM behind WHERE server_id <= :after
        ) t CROSS JOIN LATERAL (
            SELECT ARRAY({_PART_IDS}) AS ids FROM server s WHERE s.id = t.server_id AND s.bot_invited
            AND NOT s.discord_id = ANY(CAST(:resting AS text[]))
            AND NOT EXISTS (SELECT 1 FROM guild_refusal q WHERE q.guild_id = s.discord_id AND q.rests_until > now())
            OFFSET 0
        ) w WHERE cardinality(w.ids) > 0 LIMIT :limit
    ), turns AS (
        SELECT i.id, i.turn, c.place FROM (SELECT *, row_number() OVER () AS place FROM chosen) c
        CROSS JOIN LATERAL unnest(c.ids) WITH ORDINALITY AS i (id, turn)
        ORDER BY i.turn, c.place LIMIT :limit
    )
    SELECT g.id, g.server_id, s.discord_id, g.discord_id, g.role_id,
           COALESCE({newest_role_name("g")}, ''),
           g.state = 'giving', g.intended_at, g.attempts, g.evidence, g.gift_since IS NOT NULL, g.request_id,
           now() - g.intended_at,
           EXISTS (SELECT 1 FROM role_refusal f WHERE f.server_id = g.server_id AND f.role_id = g.role_id), s.language,
           EXISTS (SELECT 1 FROM member m WHERE m.server_id = g.server_id AND m.discord_id = g.discord_id
                   AND g.role_id = ANY(m.roles))
    FROM turns o JOIN "grant" g ON g.id = o.id JOIN server s ON s.id = g.server_id ORDER BY o.turn, o.place
"""


def answered(rows: Iterable[Sequence[Any]]) -> list[Intent]:
    """Return the changes in the rows that a `question` returned, in their order."""
    return [Intent(*row) for row in rows]


def surely_unsent(intent: Intent, held_since: datetime) -> bool:
    """Return whether no other process can have sent this change: it was intended after we began to hold the lease."""
    return intent.attempts == 0 and intent.intended_at >= held_since


async def carry_out(
    outside: Gateways, intent: Intent, *, sure: bool, begin: Callable[[], Awaitable[bool]] | None = None
) -> WriteOutcome:
    """Give or take the role.

    `sure` means that nobody can have sent this change yet; otherwise the member is read first, so that nothing is
    written twice. So are members who seem to have the role already: somebody else gave it. Before a removal the member
    is always read: they may have left and rejoined, or somebody else may have taken the role, while the bot was
    offline. `begin` records that a removal is about to be sent, and returns whether it is still wanted. Raises
    TokenRejected, after which no writer may continue.
    """
    began = time.monotonic()
    return replace(await _carry_out(outside, intent, sure, begin), asked_at=began)


async def _carry_out(
    outside: Gateways, intent: Intent, sure: bool, begin: Callable[[], Awaitable[bool]] | None
) -> WriteOutcome:
    sent = False
    try:
        if (unsent := await _unsent(outside, intent, sure, begin)) is not None:
            return unsent
        sent = True
        if intent.giving:
            await outside.discord.add_role(intent.guild_id, intent.discord_id, intent.role_id, intent.reason)
        else:
            await outside.discord.remove_role(intent.guild_id, intent.discord_id, intent.role_id, intent.reason)
    except TokenRejected:
        raise
    except MemberGone as fault:
        return await _unless_there(
            _member_there(outside, intent), WriteOutcome(WriteResult.LEFT, error=str(fault)), intent
        )
    except RoleGone as fault:
        return await _unless_there(
            _role_there(outside, intent), WriteOutcome(WriteResult.NO_ROLE, error=str(fault)), intent
        )
    except (GuildGone, MissingAccess) as fault:
        # For a guild that the bot has left, Discord answers 10004 about the guild and 50001 about its parts.
        away = replace(try_soon(intent, str(fault)), result=WriteResult.NO_GUILD)
        return await _unless_there(_bot_there(outside, intent), away, intent)
    except NotYet as fault:
        return WriteOutcome(WriteResult.NOT_YET, pause=fault.retry_after)
    except ProviderError as fault:
        return _failed(intent, fault, sent=sent)
    return WriteOutcome(WriteResult.DONE)


async def _unsent(
    outside: Gateways, intent: Intent, sure: bool, begin: Callable[[], Awaitable[bool]] | None
) -> WriteOutcome | None:
    """Return the outcome if the change must not be sent; otherwise None, and a removal has begun."""
    member = None
    if not (sure and intent.giving and not intent.is_there):
        member = await outside.discord.membership(intent.guild_id, intent.discord_id)
        if (unsent := _without_write(intent, member, sure=sure)) is not None:
            return unsent
    if intent.giving:
        # If the process stood still, another one may have given the role by now, and taken it after a sale.
        return WriteOutcome(WriteResult.NOT_YET, member) if intent.since_read > STALE_AFTER else None
    wanted = not _is_stale(intent) and (begin is None or await begin())
    # The age once more: the process may have stood still since.
    return None if wanted and not _is_stale(intent) else WriteOutcome(WriteResult.AGAIN, member)


def _is_stale(intent: Intent) -> bool:
    return intent.age + intent.since_read > STALE_AFTER


def _without_write(intent: Intent, member: GuildMember | None, *, sure: bool) -> WriteOutcome | None:
    """Return the outcome where the member, as Discord shows them, needs no write or cannot have one yet."""
    if member is None:
        return WriteOutcome(WriteResult.LEFT, error="Discord: Unknown Member")
    if (intent.role_id in member.roles) is intent.giving:
        if (pause := _late_grant_seconds(intent)) > 0:
            return WriteOutcome(WriteResult.WAIT, member, N_("the role may still be given"), pause=pause)
        # We never sent this change, so someone else made it. Let the next reconcile decide.
        by_others = WriteResult.THEIRS if intent.giving else WriteResult.AGAIN
        return WriteOutcome(by_others if sure else WriteResult.ALREADY, member)
    if intent.giving and member.pending:
        return WriteOutcome(WriteResult.WAIT, member, N_("membership screening is not done"), pause=SCREENING_PAUSE)
    return None


def _failed(intent: Intent, fault: ProviderError, *, sent: bool) -> WriteOutcome:
    """Return the outcome of a failed request; `sent` says whether it was the write."""
    if isinstance(fault, ProviderRefused) and forbids(fault):
        return WriteOutcome(WriteResult.REFUSED, error=str(fault), code=fault.code)
    said = isinstance(fault, ProviderBusy) or (isinstance(fault, ProviderRefused) and bool(fault.code))
    outcome = try_later(intent, str(fault)) if said else try_soon(intent, str(fault))
    perhaps = sent and not isinstance(fault, ProviderBusy | ProviderRefused)
    return replace(outcome, pause=max(outcome.pause or 0, fault.retry_after or 0), unanswered=perhaps)


def forbids(fault: ProviderRefused) -> bool:
    """Return whether Discord forbids the bot this change. Its own 403 always does, whatever the code."""
    # A 403 without a code comes from something in front of Discord, and says nothing about the role.
    return isinstance(fault, MissingPermissions) or (fault.status == 403 and fault.code is not None)


async def _member_there(outside: Gateways, intent: Intent) -> bool:
    return await outside.discord.membership(intent.guild_id, intent.discord_id) is not None


async def _role_there(outside: Gateways, intent: Intent) -> bool:
    return any(role.id == intent.role_id for role in await outside.discord.roles(intent.guild_id))


async def _bot_there(outside: Gateways, intent: Intent) -> bool:
    try:
        await outside.discord.guild(intent.guild_id)
    except (GuildGone, MissingAccess):
        return False
    return True


async def _unless_there(there: Coroutine[None, None, bool], gone: WriteOutcome, intent: Intent) -> WriteOutcome:
    """Return `gone` only if a second, different request confirms it, because one wrong answer must change nothing."""
    try:
        if not await there:
            return gone
    except TokenRejected:
        raise
    except ProviderError as fault:
        return try_soon(intent, str(fault))
    return try_soon(intent, storable("Discord contradicts itself ({reason})", reason=gone.error or ""))


def _late_grant_seconds(intent: Intent) -> float:
    """Return the seconds during which a role to take that was never given may still come.

    A writer that ended may have asked for it just before we decided to take it, and nobody will see the answer.
    """
    if intent.giving or not intent.never_given:
        return 0.0
    return (in_doubt.LATE - intent.age - intent.since_read).total_seconds()


def try_later(intent: Intent, error: str) -> WriteOutcome:
    """Return the outcome of a failed try: try again after a pause that grows with the attempts."""
    return WriteOutcome(WriteResult.WAIT, error=error, pause=doubled(FIRST_PAUSE, intent.attempts, LONGEST_PAUSE))


def try_soon(intent: Intent, error: str) -> WriteOutcome:
    """Return the outcome when Discord fails or contradicts itself: try again soon."""
    outcome = try_later(intent, error)
    return replace(outcome, pause=min(outcome.pause or 0, LONGEST_ODD_PAUSE), outage=True)
