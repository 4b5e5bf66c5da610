"""Record the result of a role change: in the ledger, the stored member, the log and the queue.

The sentences for Discord's refusals are here too.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import any_, delete, func, text, update
from sqlmodel import col, select

from locales import N_
from locales.stored_texts import storable
from models import Breaker, Grant, Notice, Rule
from models.db.session import AsyncSession
from services.core import audit, queue
from services.guilds import rivals
from services.guilds.members import mark_left, record_left, seen_many
from services.guilds.rivals import Reversal
from services.roles import breaker, in_doubt, kept_by_move
from services.roles.outbox import LONGEST_PAUSE, PROTECTED, STALE_AFTER, Intent, WriteOutcome, WriteResult
from services.rules import pausing
from services.runtime import counters

_ADVICE = {
    60003: N_(
        "{refusal} This server requires two-factor authentication of its moderators, bots included. The owner of the "
        "bot's Discord application has to switch it on under User Settings › My Account; or switch the requirement "
        "off in this server under Server Settings › Safety Setup."
    )
}
"""By Discord's code, a refusal with advice on what to do about it (docs/facts.md#discord-error-codes)."""


async def is_still_wanted(db: AsyncSession, intent: Intent) -> bool:
    """Return whether the ledger still wants this removal: no pause, protection, move, breaker or age stops it."""
    # A pause waits for no reconcile, so it does not call off a removal that one is writing at the same moment.
    rests = select(Rule.id).where(
        col(Rule.id) == any_(col(Grant.rule_ids)), Rule.state != "active", col(Rule.deleted_at).is_(None)
    )
    tripped = select(Breaker.role_id).where(
        Breaker.server_id == Grant.server_id, Breaker.role_id == Grant.role_id, *breaker.WAITING
    )
    # The age once more: this process's own clock stops while the machine sleeps. A time in the future is from
    # before the database's clock was set back, so the age is not known.
    recent = col(Grant.intended_at).between(func.now() - STALE_AFTER, func.now() + STALE_AFTER)
    # A role that seemed not to be there is not kept by a protection or a move when its removal is decided, but it may
    # have come.
    free = text(f"NOT ({_IS_PROTECTED} OR {kept_by_move.KEPT})")
    wanted = select(Grant.id).where(_standing(intent), recent, free, ~rests.exists(), ~tripped.exists())
    return (await db.exec(wanted)).first() is not None


_IS_PROTECTED = f"""
    EXISTS (SELECT 1 FROM "grant" g JOIN server s ON s.id = g.server_id WHERE g.id = "grant".id AND {PROTECTED})
"""


async def record(db: AsyncSession, intent: Intent, outcome: WriteOutcome) -> None:
    """Record the result of a change, if the ledger still wants it.

    If the grant is gone, the member has left, and perhaps rejoined. The change may have reached either membership. A
    member who was seen in the server since Discord was asked has not left: the change is tried again.
    """
    await _tell_others(db, intent, outcome)
    # In the order of a reconcile, which could deadlock with this otherwise: the stored member, then their grants.
    seen, found = await db.together((_LOCK_MEMBER, intent.line._asdict()), (_LOCK_GRANT, {"id": intent.id}))
    came_back = any(_is_news(outcome, seen_at, at) for seen_at, at in seen)
    state = str(found[0][0]) if found else None
    if state is not None and outcome.member is not None:
        await seen_many(db, [(intent.server_id, outcome.member)])
    if outcome.unanswered:
        await in_doubt.record_unanswered(db, intent.line, giving=intent.giving)
    match outcome.result:
        case WriteResult.NOT_YET:
            return
        case WriteResult.DONE | WriteResult.ALREADY:
            if state is not None:
                await _succeeded(db, intent, outcome.result, state)
            elif intent.giving and outcome.result is WriteResult.DONE:
                await in_doubt.record_unanswered(db, intent.line, giving=True)
                await queue.mark_member(db, intent.server_id, intent.discord_id, queue.CHANGED)
        case WriteResult.WAIT | WriteResult.NO_GUILD:
            await _postpone(db, intent, outcome)
        case WriteResult.AGAIN:
            await _back_to_held(db, intent)
        case WriteResult.THEIRS:
            # Without a grant, the next reconcile decides as about any role that a member had already.
            gone = await db.execute(delete(Grant).where(_standing(intent)).returning(col(Grant.id)))
            if gone.first() is not None:
                await rivals.record(db, [Reversal(*intent.line, taken=False)])
        case WriteResult.LEFT:
            # The event that they left was lost, and they came back while Discord was asked.
            if state is not None and not came_back:
                await record_left(db, [(intent.server_id, intent.discord_id)])
        case WriteResult.REFUSED:
            await _after_refusal(db, intent, outcome)
        case WriteResult.NO_ROLE:
            pass
    # Last, because every write updates the same few rows and waits until the previous one commits.
    change = "give" if intent.giving else "take"
    await counters.add(db, counters.ROLE_WRITES, {(change, outcome.result.value): 1})


_LOCK_RULES = "SELECT 1 FROM rule WHERE server_id = :server_id AND role_id = :role_id ORDER BY id FOR NO KEY UPDATE"
_LOCK_MEMBER = (
    "SELECT CASE WHEN left_at IS NULL THEN seen_at END, clock_timestamp() FROM member "
    "WHERE server_id = :server_id AND discord_id = :discord_id FOR UPDATE"
)
_LOCK_GRANT = 'SELECT state FROM "grant" WHERE id = :id FOR UPDATE'


def _is_news(outcome: WriteOutcome, seen_at: datetime | None, at: datetime) -> bool:
    """Return whether a member was seen in the server since Discord was asked. `at` is the present by the database.

    The database's clock was read before this process's own, so the question counts as a little older than it is, and
    never as newer: the member is then asked about once more. A time in the future comes from a clock that was ahead.
    """
    asked_at = at - timedelta(seconds=time.monotonic() - outcome.asked_at)
    return seen_at is not None and asked_at < seen_at <= at


async def _tell_others(db: AsyncSession, intent: Intent, outcome: WriteOutcome) -> None:
    """Write what the result says about more than its grant: queue the member, or pause or resume the role's rules.

    This comes before the locks on the member and the grant. A reconcile has the member's row in the queue before them.
    And several changes of a role fail at the same moment, and each writes about the role's rules and then about all of
    its grants, of which the member's own is one: the member is locked before those. The rules come first, as in each
    change of rules, which queues the members after that.
    """
    if outcome.result in {WriteResult.NO_ROLE, WriteResult.REFUSED}:
        await db.together((_LOCK_RULES, intent.line._asdict()), (_LOCK_MEMBER, intent.line._asdict()))
    match outcome.result:
        case WriteResult.AGAIN | WriteResult.THEIRS:
            await queue.mark_member(db, intent.server_id, intent.discord_id, queue.CHANGED)
        case WriteResult.LEFT:
            await mark_left(db, [(intent.server_id, intent.discord_id)])
        case WriteResult.NO_ROLE:
            await pausing.role_gone(db, intent.server_id, intent.role_id)
        case WriteResult.REFUSED:
            await pausing.refused(db, intent.server_id, intent.role_id, _words_of_refusal(intent, outcome))
        case WriteResult.DONE | WriteResult.ALREADY:
            if intent.trial and outcome.result is WriteResult.DONE:
                await pausing.accepted(db, intent.server_id, intent.role_id)
            if await _is_decided_again(db, intent, outcome.result):
                await queue.mark_member(db, intent.server_id, intent.discord_id, queue.CHANGED)
        case _:
            pass


async def _is_decided_again(db: AsyncSession, intent: Intent, result: WriteResult) -> bool:
    """Return whether the member is queued after the change. What changes until the locks are held is seen then."""
    found = await db.exec(select(_standing(intent), col(Grant.rule_ids)).where(Grant.id == intent.id))
    if (row := found.first()) is None:
        return intent.giving and result is WriteResult.DONE
    is_standing, rule_ids = row
    return not is_standing or (intent.giving and await _replaces(db, intent, rule_ids))


def _standing(intent: Intent) -> Any:
    state = "giving" if intent.giving else "taking"
    return (col(Grant.id) == intent.id) & (col(Grant.state) == state) & (col(Grant.intended_at) == intent.intended_at)


def _taken(intent: Intent) -> Any:
    """Return the condition on the grant of a taken role, even if the removal was cancelled while in progress.

    It may have been decided again since. As long as it is in doubt, nothing has given the role after it.
    """
    states = col(Grant.state).in_(("taking", "held", "lost"))
    again = (col(Grant.intended_at) > intent.intended_at) & text(in_doubt.OF_REMOVAL)
    return (col(Grant.id) == intent.id) & states & ((col(Grant.intended_at) == intent.intended_at) | again)


def _unwanted(intent: Intent) -> Any:
    """Return the condition on the grant of a given role whose removal was decided, or called off, in the meantime."""
    return (col(Grant.id) == intent.id) & col(Grant.state).in_(("taking", "held")) & queue.NEVER_GIVEN


_HELD: dict[str, Any] = {
    "state": "held", "next_at": None, "attempts": 0, "updated_at": func.now(), "evidence": queue.NOW_GIVEN,
}  # fmt: skip
"""The values of a grant whose role the member was just seen to have."""


async def _succeeded(db: AsyncSession, intent: Intent, result: WriteResult, state: str) -> None:
    kept = (col(Grant.rule_ids), col(Grant.batch), col(Grant.had_before))
    if intent.giving:
        change = update(Grant).where(_standing(intent)).values({**_HELD, "last_error": None}).returning(*kept)
    else:
        change = delete(Grant).where(_taken(intent)).returning(*kept)
    row = (await db.execute(change)).first()
    if row is None and intent.giving:
        came = update(Grant).where(_unwanted(intent)).values(evidence=queue.NOW_GIVEN).returning(*kept)
        row = (await db.execute(came)).first()
        if row is not None:
            await queue.mark_member(db, intent.server_id, intent.discord_id, queue.CHANGED)
    await db.execute(_SHOW if intent.giving else _HIDE, intent.line._asdict())
    if intent.giving and intent.attempts:
        await in_doubt.clear_doubt(db, intent.line)
    if row is None:
        return
    rule_ids, batch, had_before = row
    if await _was_never_given(db, intent, result):
        await pausing.sweep_deleted(db, rule_ids)
        return
    told = {
        **intent.evidence, "roleName": intent.role_name, "ruleIds": list(rule_ids), "gift": intent.gift,
        "seenDone": result is WriteResult.ALREADY, **({"hadBefore": True} if had_before else {}),
    }  # fmt: skip
    batch = batch if intent.gift or not intent.giving else None
    line = audit.role_line("role.given" if intent.giving else "role.taken", intent.line, batch=batch, data=told)
    await audit.record(db, line)
    if intent.giving:
        if await _replaces(db, intent, rule_ids):
            await queue.mark_member(db, intent.server_id, intent.discord_id, queue.CHANGED)
    else:
        data = {"roleId": intent.role_id, "roleName": intent.role_name}
        db.add(Notice(discord_id=intent.discord_id, server_id=intent.server_id, kind="role.taken", data=data))
        await pausing.sweep_deleted(db, rule_ids)
        if state != "taking":
            await queue.mark_member(db, intent.server_id, intent.discord_id, queue.CHANGED)


_SHOW = (
    "UPDATE member SET roles = array_append(array_remove(roles, :role_id), :role_id) "
    "WHERE server_id = :server_id AND discord_id = :discord_id"
)
_HIDE = (
    "UPDATE member SET roles = array_remove(roles, :role_id) WHERE server_id = :server_id AND discord_id = :discord_id"
)


async def _replaces(db: AsyncSession, intent: Intent, rule_ids: Sequence[int]) -> bool:
    """Return whether the removal of another role waits for this one: its rule gave that one and now gives this."""
    waits = await db.execute(
        'SELECT 1 FROM "grant" WHERE server_id = :server_id AND discord_id = :discord_id AND role_id <> :role_id '
        "AND state = 'held' AND no_since IS NOT NULL AND rule_ids && CAST(:rules AS integer[]) LIMIT 1",
        {**intent.line._asdict(), "rules": list(rule_ids)},
    )
    return waits.first() is not None


async def _was_never_given(db: AsyncSession, intent: Intent, result: WriteResult) -> bool:
    """Return whether a role to be taken was never given: it is absent without a removal of ours."""
    if intent.giving or result is not WriteResult.ALREADY or not intent.never_given:
        return False
    return intent.line not in await in_doubt.removals(db, [intent.line])


async def _postpone(db: AsyncSession, intent: Intent, outcome: WriteOutcome, *, tries: int = 1) -> None:
    """Try the change again later. A try that Discord surely did not carry out adds nothing to `tries`."""
    pause = timedelta(seconds=outcome.pause or LONGEST_PAUSE)
    await db.execute(
        update(Grant)
        .where(_standing(intent))
        .values(attempts=col(Grant.attempts) + tries, next_at=func.now() + pause, last_error=outcome.error)
    )


async def _back_to_held(db: AsyncSession, intent: Intent, error: str | None = None) -> None:
    await db.execute(update(Grant).where(_standing(intent)).values({**_HELD, "last_error": error}))


def _words_of_refusal(intent: Intent, outcome: WriteOutcome) -> str:
    """Return why the role's rules are paused: Discord blocks an address after 10,000 refusals in 10 minutes."""
    # Translators: {error} is Discord's answer, in English.
    told = N_("Discord refused to give the role ({error}).")
    if not intent.giving:
        told = N_("Discord refused to take the role ({error}).")
    reason = storable(told, error=outcome.error or "")
    if advice := _ADVICE.get(outcome.code or 0):
        reason = storable(advice, refusal=reason)
    return reason


async def _after_refusal(db: AsyncSession, intent: Intent, outcome: WriteOutcome) -> None:
    if intent.giving:
        # The change stays in the outbox: the next try shows whether Discord still refuses.
        await _postpone(db, intent, replace(outcome, pause=1), tries=0)
    else:
        await _back_to_held(db, intent, outcome.error)
