"""Carrying out what the ledger intends: one role given or taken at a time, read back whenever there is doubt."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from gateways import Gateways
from gateways.discord_types import (
    GuildGone,
    Member,
    MemberGone,
    MissingAccess,
    MissingPermissions,
    RoleGone,
    TokenRejected,
)
from gateways.errors import NotYet, ProviderBusy, ProviderError, ProviderRefused
from models import now
from models.session import AsyncSession, Question
from services import unanswered

__all__ = [
    "Intent", "Outcome", "Result", "TokenRejected", "carry_out", "failed", "open_intents",
]  # fmt: skip

STALE_AFTER = timedelta(seconds=60)
"""A removal that could not be sent for so long is decided anew: the wallet may have been refilled meanwhile."""

LONGEST_PAUSE = 300

RESTS = """
    (g.state = 'giving' AND g.gift_since IS NULL AND cardinality(g.rule_ids) > 0 AND NOT EXISTS (
        SELECT 1 FROM rule r WHERE r.server_id = g.server_id AND r.role_id = g.role_id AND r.state = 'active'
        AND r.deleted_at IS NULL))
"""
"""Of a grant `g`: it is to be given by rules that rest, so it waits until one for the role goes on."""


@dataclass(frozen=True, slots=True)
class Intent:
    """A role to be given to or taken from one member, committed before anything is asked of Discord."""

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
    created_at: datetime | None = None
    """When the role was first meant to be given."""

    @property
    def line(self) -> unanswered.Line:
        """Whose role it is, as the ledger names it."""
        return self.server_id, self.discord_id, self.role_id

    @property
    def reason(self) -> str:
        """What the server's own audit log says."""
        if self.giving:
            return "Given back by an admin" if self.gift else "Holds what the rule asks for"
        return "No longer holds what the rules ask for"


class Result(Enum):
    """What came of an intent."""

    DONE = "done"
    ALREADY = "already"
    """It had happened before, or was never needed."""
    WAIT = "wait"
    """Membership screening is not done, or Discord is out of order: try again later."""
    NOT_YET = "not yet"
    """Discord's limit for the server is used up and nothing was sent: it stands as it stood."""
    AGAIN = "again"
    """Too old to be trusted, called off, or about a role that is gone without us: decide anew."""
    LEFT = "left"
    NO_ROLE = "no_role"
    REFUSED = "refused"
    NO_GUILD = "no_guild"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one intent, what was seen on the way, and why it failed if it did."""

    result: Result
    member: Member | None = None
    error: str | None = None
    pause: float | None = None
    unanswered: bool = False
    """Whether the role write was sent and may be carried out yet."""


def question(limit: int, busy: Collection[int], resting: Collection[str] = ()) -> Question:
    """For the intents whose time has come, in turns over the guilds so that a large one does not starve the others.

    Without those in `busy`, and without those of the guilds in `resting`.

    Who is still being screened waits for a role: Discord would end the screening by giving one. So does everybody while
    all rules for it rest, for Discord refused it, or an admin let them rest.
    """
    return _OPEN, {"limit": limit, "busy": list(busy), "resting": list(resting), "late": unanswered.LATE}


_OPEN = f"""
    SELECT id, server_id, guild_id, discord_id, role_id, role_name, giving, intended_at, attempts, evidence, gift,
           request_id, created_at
    FROM (
        SELECT g.id, g.server_id, s.discord_id AS guild_id, g.discord_id, g.role_id,
               COALESCE((SELECT r.role_name FROM rule r WHERE r.server_id = g.server_id
                         AND r.role_id = g.role_id ORDER BY r.id DESC LIMIT 1), '') AS role_name,
               g.state = 'giving' AS giving, g.intended_at, g.attempts, g.evidence, g.request_id, g.created_at,
               g.gift_since IS NOT NULL AS gift,
               row_number() OVER (PARTITION BY g.server_id ORDER BY g.next_at, g.id) AS turn
        FROM "grant" g JOIN server s ON s.id = g.server_id
        LEFT JOIN breaker b ON b.server_id = g.server_id AND b.role_id = g.role_id
             AND b.approved_at IS NULL AND b.dismissed_at IS NULL
        LEFT JOIN member m ON m.server_id = g.server_id AND m.discord_id = g.discord_id
        WHERE g.state IN ('giving', 'taking') AND g.next_at <= now() AND s.bot_invited
        AND NOT (g.state = 'taking' AND b.role_id IS NOT NULL)
        AND NOT (g.state = 'giving' AND COALESCE(m.pending, false))
        AND NOT g.id = ANY(CAST(:busy AS integer[])) AND NOT s.discord_id = ANY(CAST(:resting AS text[]))
        AND NOT {unanswered.STILL_OPEN} AND NOT {RESTS}
    ) o ORDER BY turn, id LIMIT :limit
"""


def answered(rows: Iterable[Sequence[Any]]) -> list[Intent]:
    """What such a question is answered with."""
    return [Intent(*row) for row in rows]


async def open_intents(
    db: AsyncSession, limit: int, busy: Collection[int], resting: Collection[str] = ()
) -> list[Intent]:
    """The intents whose time has come, as such a question tells of them."""
    (rows,) = await db.together(question(limit, busy, resting))
    return answered(rows)


async def carry_out(
    outside: Gateways, intent: Intent, *, sure: bool, begin: Callable[[], Awaitable[bool]] | None = None
) -> Outcome:
    """Give or take the role.

    `sure` says that nobody can have sent this intent yet; otherwise the member is read first, and nothing is written
    twice. Before a removal they are read in any case: they may have left and come back, or lost the role by another
    hand, while the bot was away. `begin` notes that a removal is about to be sent, and says whether it still stands
    after that read. Raises TokenRejected, after which no writer may go on.
    """
    sent = False
    try:
        member = None
        if not (sure and intent.giving):
            member = await outside.discord.member(intent.guild_id, intent.discord_id)
            if (intent.role_id in member.roles) is intent.giving:
                if (pause := _may_come(intent)) > 0:
                    return Outcome(Result.WAIT, member, "the role may be given yet", pause=pause)
                # What nobody can have taken yet and is not there went without us: that is for the look to find out.
                return Outcome(Result.AGAIN if sure else Result.ALREADY, member)
            if intent.giving and member.pending:
                return Outcome(Result.WAIT, member, "membership screening is not done", pause=60)
        if not intent.giving and now() - intent.intended_at > STALE_AFTER:
            return Outcome(Result.AGAIN, member)
        if not intent.giving and begin is not None and not await begin():
            return Outcome(Result.AGAIN, member)
        sent = True
        if intent.giving:
            await outside.discord.add_role(intent.guild_id, intent.discord_id, intent.role_id, intent.reason)
        else:
            await outside.discord.remove_role(intent.guild_id, intent.discord_id, intent.role_id, intent.reason)
    except TokenRejected:
        raise
    except MemberGone:
        return Outcome(Result.LEFT)
    except RoleGone as fault:
        return Outcome(Result.NO_ROLE, error=str(fault))
    except GuildGone as fault:
        return Outcome(Result.NO_GUILD, error=str(fault))
    except (MissingPermissions, MissingAccess) as fault:
        return Outcome(Result.REFUSED, error=str(fault))
    except NotYet as fault:
        return Outcome(Result.NOT_YET, pause=fault.retry_after)
    except (ProviderBusy, ProviderRefused, ProviderError) as fault:
        outcome = failed(intent, str(fault))
        perhaps = sent and not isinstance(fault, ProviderBusy | ProviderRefused)
        return replace(outcome, pause=max(outcome.pause or 0, fault.retry_after or 0), unanswered=perhaps)
    return Outcome(Result.DONE)


def _may_come(intent: Intent) -> float:
    """For how many seconds a role may come yet that is to be taken, and was still being given when that was decided.

    A writer that ended may have sent it, and nobody will hear the answer.
    """
    if intent.giving or intent.attempts == 0 or intent.created_at is None:
        return 0.0
    return (intent.created_at + unanswered.LATE - now()).total_seconds()


def failed(intent: Intent, error: str) -> Outcome:
    """To be tried again after a pause that grows with the attempts."""
    return Outcome(Result.WAIT, error=error, pause=min(2.0 * 2 ** min(intent.attempts, 8), LONGEST_PAUSE))
