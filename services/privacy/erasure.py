"""Erase a person's data: first the roles, by each rule's removal policy, then everything else."""

import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from typing import cast

from sqlalchemy import or_
from sqlmodel import col, select

from gateways.chains.catalogue import CHAINS
from locales import _, ngettext
from models import Farewell, Grant, Rule, Server, User, Wallet, now
from models.db.session import AsyncSession
from services.accounts import forgotten_people, users
from services.core import audit, queue
from services.core.actors import Actor
from services.core.answer import Answer
from services.core.discord_text import DEFAULT_COLOR
from services.core.json_view import json_view
from services.engine.cases import Case, load
from services.engine.decide import Action, Decision, GrantFacts, decide
from services.guilds.role_safety import UNKNOWN_ROLE
from services.holdings.last_known import READINGS
from services.roles import breaker
from services.servers import activity

HELD = frozenset({"giving", "held", "taking"})
"""The states of the ledger in which a member has, or is about to have, a role from us."""


_NEVER = datetime(9999, 1, 1, tzinfo=UTC)
LINES_AT_ONCE = 5_000
"""Lines of the log that one call of `finish` rewrites."""
PEOPLE_AT_ONCE = 50
"""People whom one call of `finish` advances."""


class RoleEnd(Enum):
    """When a role is taken after its holder's data is deleted, if at all."""

    NOW = "now"
    LATER = "later"
    """After its rules' grace time."""
    STAYS = "stays"


@json_view
class EndingRole:
    """A role that we gave somebody, and a sentence about its end; `hours` is the grace time."""

    server_name: str
    role_name: str
    role_color: str
    end: RoleEnd
    hours: int
    text: str


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The result of `forget`. `token` is Discord's, to be revoked there after the commit."""

    roles: tuple[EndingRole, ...]
    token: str | None


async def consequences(db: AsyncSession, actor: Actor) -> tuple[EndingRole, ...]:
    """Return how each of the person's roles ends once none of their wallets counts."""
    found: list[EndingRole] = []
    claims = [queue.Claim(server_id, actor.discord_id, 0, 0, 0) for server_id in await _places(db, actor)]
    for case in await load(db, claims):
        server = await db.get_one(Server, case.claim.server_id)
        stored = select(Rule).where(Rule.server_id == case.claim.server_id).order_by(col(Rule.id))
        rules = (await db.exec(stored)).all()
        stopped = {one.role_id for one in await breaker.tripped(db, case.claim.server_id)}
        for decision in _without_wallets(case):
            ledger = case.grant_of(decision.role_id)
            if ledger is None or ledger.state not in HELD:
                continue
            named = [rule for rule in rules if rule.role_id == decision.role_id]
            end, hours, words = _told(case, decision, ledger, stopped=decision.role_id in stopped)
            if named:
                name, color = named[-1].role_name, named[-1].role_color
            else:
                known = await activity.role_names(db, case.claim.server_id, [decision.role_id])
                name, color = known.get(decision.role_id, _(UNKNOWN_ROLE)), DEFAULT_COLOR
            found.append(EndingRole(server.name, name, color, end, hours, words))
    return tuple(sorted(found, key=lambda one: (one.server_name.casefold(), one.role_name.casefold())))


async def _places(db: AsyncSession, actor: Actor) -> list[int]:
    """Return the servers where the person has a grant."""
    result = await db.execute(
        'SELECT DISTINCT server_id FROM "grant" WHERE discord_id = :who ORDER BY server_id', {"who": actor.discord_id}
    )
    return [int(server_id) for (server_id,) in result.all()]


def _without_wallets(case: Case) -> list[Decision]:
    """Return the decisions about the member as if they had no wallet but every role that we gave."""
    answers = {rule.id: Answer.NO for rule in case.rules if rule.decides}
    grants = [replace(grant, gift=False, protected=False) for grant in case.grants]
    return decide(case.rules, answers, grants, frozenset(grant.role_id for grant in case.grants), now())


def _told(case: Case, decision: Decision, ledger: GrantFacts, *, stopped: bool) -> tuple[RoleEnd, int, str]:
    if not case.bot_invited:
        return RoleEnd.STAYS, 0, _("stays: the bot is no longer in that server, so it can take nothing there")
    if stopped:
        return RoleEnd.LATER, 0, _("is taken once an admin of the server lets removals go on")
    if decision.action is Action.WAIT and decision.due_at is not None:
        hours = max(1, round((decision.due_at - now()).total_seconds() / 3600))
        said = ngettext(
            "is taken after the server's time of grace, in {count} hour",
            "is taken after the server's time of grace, in {count} hours",
            hours,
        )
        return RoleEnd.LATER, hours, said.format(count=hours)
    if decision.action is Action.TAKE or ledger.state == "taking":
        return RoleEnd.NOW, 0, _("is taken within the next minutes")
    return RoleEnd.STAYS, 0, _("stays while its rule is paused, and is taken when the rule resumes")


async def forget(db: AsyncSession, actor: Actor) -> Forgotten:
    """Delete the person's data now, except the grants of roles that are still to be taken and what `finish` removes.

    Their wallets stop counting now, so the next reconcile takes each role by its rules' removal policy; `finish` then
    removes the remaining data. Signs the person out everywhere. A second call is not an error.
    """
    ending = await consequences(db, actor)
    places = await _places(db, actor)
    wallets = (await db.exec(select(Wallet.address).where(Wallet.user_id == actor.user_id))).all()
    known = {
        "who": actor.discord_id,
        "wallets": list(wallets),
        "chains": [name for name, one in CHAINS.items() if one.delegates],
    }
    for statement in _BEFORE_THE_QUEUE:
        await db.execute(statement, known)
    await queue.mark_people(db, [actor.discord_id], wallets, also=places)
    token = await users.drop_discord_grant(db, actor.user_id)
    leaving = {"who": actor.discord_id, "user": actor.user_id, "pseudonym": f"forgotten-{secrets.token_hex(6)}"}
    await db.flush()
    for statement in _AT_ONCE:
        await db.execute(statement, leaving)
    row = await db.get_one(Farewell, actor.discord_id)
    await audit.record_all(
        db, [audit.line("member.forgotten", server_id=server_id, subject=row.pseudonym) for server_id in places]
    )
    return Forgotten(ending, token)


# A change of a server, a follower, and a reconcile that stores delegations write these rows, and queue members after
# that.
_BEFORE_THE_QUEUE = (
    "SELECT 1 FROM server WHERE owner_id = :who OR CAST(:who AS text) = ANY(protected_members) ORDER BY id "
    "FOR NO KEY UPDATE",
    # The first read of a wallet has no row that could be locked, so it waits for one that is made here and deleted with
    # the others.
    """
    INSERT INTO delegation_read (chain, delegate, block, endpoint, more)
    SELECT chain, delegate, 0, 0, false FROM (
        SELECT chain, delegate FROM delegation_read WHERE delegate = ANY(CAST(:wallets AS text[]))
        UNION SELECT c.chain, w.address FROM unnest(CAST(:chains AS text[])) AS c (chain),
            unnest(CAST(:wallets AS text[])) AS w (address) WHERE starts_with(w.address, '0x')) p
    ORDER BY chain, delegate ON CONFLICT (chain, delegate) DO UPDATE SET delegate = EXCLUDED.delegate
    """,
    "SELECT 1 FROM sighting WHERE address = ANY(CAST(:wallets AS text[])) ORDER BY chain, address FOR UPDATE",
)


def _about_wallets(table: str, column: str) -> str:
    """Return the statement that deletes what a table has about the person's wallets.

    A contract account at the same address of another chain may be somebody else's, and what was read there stays.
    """
    return f"""
        DELETE FROM {table} t WHERE {column} IN (SELECT address FROM wallet WHERE user_id = :user)
        AND NOT EXISTS (SELECT 1 FROM wallet w WHERE w.address = t.{column} AND w.user_id <> :user
                        AND w.chain IN ('', t.chain))
    """


# The order matters: readings are found by the wallet. Sessions, wallets, challenges with their trails, and choices are
# deleted with the user's own row.
_AT_ONCE = (
    """
    INSERT INTO farewell (discord_id, pseudonym, asked_at) VALUES (:who, :pseudonym, now())
    ON CONFLICT (discord_id) DO UPDATE SET asked_at = now(), renamed_at = NULL
    """,
    *(_about_wallets(table, "address") for table in (*READINGS, "sighting", "quarantine")),
    *(_about_wallets(table, "delegate") for table in ("delegation", "ended_delegation", "delegation_read")),
    "SELECT 1 FROM notice WHERE discord_id = :who ORDER BY id FOR UPDATE",
    "DELETE FROM notice WHERE discord_id = :who",
    "SELECT 1 FROM access WHERE discord_id = :who ORDER BY server_id FOR UPDATE",
    "DELETE FROM access WHERE discord_id = :who",
    "SELECT 1 FROM truce WHERE discord_id = :who ORDER BY server_id, role_id FOR UPDATE",
    "DELETE FROM truce WHERE discord_id = :who",
    "SELECT 1 FROM rival_move WHERE discord_id = :who OR actor_id = :who ORDER BY id FOR UPDATE",
    "DELETE FROM rival_move WHERE discord_id = :who",
    # An alert about a rival has the rival's id in its key and the name in its text.
    "DELETE FROM alert WHERE starts_with(key, 'rival:') AND split_part(key, ':', 3) = :who",
    "UPDATE payout_listing SET actor = :pseudonym WHERE actor = :who",
    "UPDATE rival_move SET actor_id = :pseudonym, actor_name = NULL WHERE actor_id = :who",
    # A role kept only by an admin's decision is not kept for somebody who wants to be forgotten.
    'SELECT 1 FROM "grant" WHERE discord_id = :who ORDER BY server_id, role_id FOR UPDATE',
    'UPDATE "grant" SET gift_since = NULL WHERE discord_id = :who',
    """
    UPDATE server SET protected_members = array_remove(protected_members, CAST(:who AS text))
    WHERE CAST(:who AS text) = ANY(protected_members)
    """,
    # Discord names the owner again to the bot while it is in the server.
    "UPDATE server SET owner_id = NULL WHERE owner_id = :who",
    'DELETE FROM "user" WHERE id = :user',
)


async def finish(db: AsyncSession) -> int:
    """Replace forgotten people's ids in the log, and delete the farewells of people who have no grant or have returned.

    Return how many farewells were deleted. Each call advances at most PEOPLE_AT_ONCE people and rewrites at most
    LINES_AT_ONCE lines of the log. For people who have returned, it rewrites only lines from before their return.
    """
    gone, left = 0, LINES_AT_ONCE
    renamed: list[tuple[Farewell, datetime | None, bool, dict[str, str | datetime]]] = []
    for row, returned_at, over in (await db.exec(_ADVANCING.limit(PEOPLE_AT_ONCE))).all():
        back = cast("datetime | None", returned_at)
        # Without a return there is no time limit, so lines that another process dated by its own clock count too.
        values = {"who": row.discord_id, "pseudonym": row.pseudonym, "before": back or _NEVER}
        for statement in _LINES:
            if left > 0:
                left -= len((await db.execute(statement, values | {"most": left})).all())
        if left <= 0:
            break
        renamed.append((row, back, over, values))
    people = {"people": [row.discord_id for row, *_ in renamed]}
    await db.together(*((statement, people) for statement in (_LOCKS if renamed else ())))
    for row, back, over, values in renamed:
        await db.together(*((statement, values) for statement in _UNNAME))
        row.renamed_at = now()
        if over:
            if back is None:
                await forgotten_people.remember(db, row.discord_id, row.pseudonym)
            await db.delete(row)
            gone += 1
    return gone


_OVER = or_(col(User.id).is_not(None), ~select(Grant.id).where(Grant.discord_id == Farewell.discord_id).exists())
# A farewell waits for months where a paused rule, or a server without the bot, keeps a role: such rows are not locked.
_ADVANCING = (
    select(Farewell, User.created_at, _OVER)
    .outerjoin(User, col(User.discord_id) == col(Farewell.discord_id))
    .where(~col(Farewell.discord_id).startswith(forgotten_people.DIGEST))
    .where(or_(col(Farewell.renamed_at).is_(None), _OVER))
    .order_by(col(Farewell.asked_at))
    .with_for_update(skip_locked=True, of=Farewell)
)
# A line's data names only its actor and its subject, so no other line has to be read.
_LINES = tuple(
    f"""
    UPDATE event SET {column} = CAST(:pseudonym AS text), data = CASE
        WHEN position(CAST(:who AS text) IN CAST(data AS text)) > 0
        THEN CAST(replace(CAST(data AS text), CAST(:who AS text), CAST(:pseudonym AS text)) AS jsonb) ELSE data END
    WHERE id IN (SELECT id FROM event WHERE {column} = CAST(:who AS text) AND at <= :before LIMIT :most) RETURNING 1
    """
    for column in ("subject", "actor")
)
# All rows of a table are locked in the order of their keys, also where they name different people: person by person,
# this could deadlock with what locks several of them. The tables are in the order in which a reconcile and a change of
# rules lock them.
_LOCKS = tuple(
    f"SELECT 1 FROM {table} WHERE {which} ORDER BY {key} FOR {strength}".replace(":any", "ANY(CAST(:people AS text[]))")
    for table, which, key, strength in (
        ("wallet", "evidence ->> 'movedFrom' = :any", "id", "NO KEY UPDATE"),
        ("rule", "created_by = :any", "id", "NO KEY UPDATE"),
        ("member", "discord_id = :any", "server_id, discord_id", "UPDATE"),
        ("breaker", "approved_by = :any OR dismissed_by = :any", "server_id, role_id", "NO KEY UPDATE"),
        ("rival_move", "discord_id = :any OR actor_id = :any", "id", "UPDATE"),
        ("notice", "discord_id = :any", "id", "UPDATE"),
    )
)
_UNNAME = (
    """
    UPDATE wallet SET evidence = jsonb_set(evidence, '{movedFrom}', to_jsonb(CAST(:pseudonym AS text)))
    WHERE evidence ->> 'movedFrom' = :who
    """,
    "UPDATE rule SET created_by = :pseudonym WHERE created_by = :who AND created_at <= :before",
    "UPDATE breaker SET approved_by = :pseudonym WHERE approved_by = :who AND approved_at <= :before",
    "UPDATE breaker SET dismissed_by = :pseudonym WHERE dismissed_by = :who AND dismissed_at <= :before",
    "DELETE FROM notice WHERE discord_id = :who AND created_at <= :before",
    "DELETE FROM rival_move WHERE discord_id = :who AND at <= :before",
    "UPDATE rival_move SET actor_id = :pseudonym, actor_name = NULL WHERE actor_id = :who AND at <= :before",
    "DELETE FROM member WHERE discord_id = :who AND left_at IS NOT NULL",
    # The row of a member who is still there has no other reason than those of strangers any more; without one,
    # `known_people.forget_strangers` deletes it.
    "UPDATE member SET met_at = NULL WHERE discord_id = :who AND met_at <= :before",
)
