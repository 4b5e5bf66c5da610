"""Giving roles back: those that a batch of removals took, and those that somebody else took from members of ours."""

from sqlalchemy import text

from models import Event
from models.db.session import AsyncSession
from services.core import queue
from services.core.errors import Conflict
from services.engine.ledger import INTENT_CHANNEL
from services.guilds.permissions import Rights
from services.guilds.role_safety import find, refusal
from services.servers.activity_sentences import members

Undone = tuple[str, int]
"""What is done, in words, and how many members get the role."""


async def give_back(db: AsyncSession, found: Rights, event: Event) -> Undone:
    """Give the role of a batch of removals back to everybody who is still there.

    They get it as a gift: it stays until a rule says yes to them again. Removals that are only intended are turned
    round. Raises Conflict when the role cannot be granted (any more).
    """
    name = _grantable(found, event.role_id or "")
    who = {"server": event.server_id, "role": event.role_id, "batch": event.batch}
    turned = await db.execute(text(_TURN_ROUND), who)
    given = await db.execute(text(_GIVE), who)
    people = [str(one) for (one,) in [*turned.all(), *given.all()]]
    taken = int((await db.execute(text(_TAKEN), who)).scalar_one())
    await _call(db, found, people)
    if not people:
        raise Conflict(f"Nobody is left to give {name} back to: they have it again, or they have left the server.")
    rest = taken - len(people)
    others = f" {members(rest)} of those who lost it have it again or are gone." if rest > 0 else ""
    words = f"{_get(len(people))} {name} back. It stays although no rule says yes, until one does again.{others}"
    return words, len(people)


async def give_again(db: AsyncSession, found: Rights, event: Event) -> Undone:
    """Give a role of ours again to those from whom somebody else took it; the rules go on deciding about it.

    Raises Conflict when the role cannot be granted (any more), or when nobody misses it.
    """
    name = _grantable(found, event.role_id or "")
    who = {"server": event.server_id, "role": event.role_id, "batch": event.batch}
    people = [str(one) for (one,) in (await db.execute(text(_AGAIN), who)).all()]
    await _call(db, found, people)
    if not people:
        raise Conflict(f"Nobody is left who misses {name}.")
    return f"{_get(len(people))} {name} again. Rules decide about it as before.", len(people)


def _get(count: int) -> str:
    return f"{members(count)} get{'s' if count == 1 else ''}"


def _grantable(found: Rights, role_id: str) -> str:
    """The role's name as Discord has it now. Raises Conflict with the reason why it cannot be granted."""
    guild, person, bot = found.guild_with_bot()
    role = find(guild.roles, role_id)
    if role is None:
        raise Conflict("This role does not exist in the server any more.")
    if reason := refusal(role, guild.id, bot, person):
        raise Conflict(reason)
    return role.name


async def _call(db: AsyncSession, found: Rights, people: list[str]) -> None:
    """Wake the writer; a look at these members that is under way is not to be trusted any more."""
    if people:
        await queue.mark_members(db, found.server.id or 0, people, queue.CHANGED)
        await db.execute(text("SELECT pg_notify(:channel, '')"), {"channel": INTENT_CHANNEL})


# One attempt counts as made: the writer then looks at the member first, for the role may (still) be there.
_TURN_ROUND = """
    UPDATE "grant" SET state = 'giving', attempts = 1, gift_since = now(), no_since = NULL, held_back_at = NULL,
        intended_at = now(), next_at = now(), updated_at = now()
    WHERE server_id = :server AND role_id = :role AND batch = :batch AND state = 'taking' RETURNING discord_id
"""
_LOSERS = """
    SELECT DISTINCT e.subject FROM event e
    WHERE e.server_id = :server AND e.role_id = CAST(:role AS text) AND e.batch = CAST(:batch AS uuid)
    AND e.kind = 'role.taken'
"""
_GIVE = f"""
    INSERT INTO "grant" (server_id, discord_id, role_id, rule_ids, state, had_before, evidence, gift_since, batch,
                         intended_at, next_at, attempts, created_at, updated_at)
    SELECT m.server_id, m.discord_id, CAST(:role AS text), CAST('{{}}' AS integer[]), 'giving', false,
           jsonb_build_object('undone', CAST(:batch AS text)), now(), CAST(:batch AS uuid),
           now(), now(), 1, now(), now()
    FROM member m
    WHERE m.server_id = :server AND m.left_at IS NULL AND m.discord_id IN ({_LOSERS})
    AND NOT (CAST(:role AS text) = ANY(m.roles))
    AND NOT EXISTS (SELECT 1 FROM farewell f WHERE f.discord_id = m.discord_id)
    ORDER BY m.discord_id
    ON CONFLICT (server_id, discord_id, role_id) DO NOTHING RETURNING discord_id
"""
_TAKEN = f"SELECT count(*) FROM ({_LOSERS}) l"
_AGAIN = """
    UPDATE "grant" g SET state = 'giving', attempts = 1, intended_at = now(), next_at = now(), updated_at = now()
    FROM event e, member m
    WHERE e.server_id = :server AND e.role_id = CAST(:role AS text) AND e.batch = CAST(:batch AS uuid)
    AND e.kind = 'role.lost'
    AND g.server_id = e.server_id AND g.role_id = e.role_id AND g.discord_id = e.subject AND g.state = 'lost'
    AND m.server_id = g.server_id AND m.discord_id = g.discord_id AND m.left_at IS NULL RETURNING g.discord_id
"""
