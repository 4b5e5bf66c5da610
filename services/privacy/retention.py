"""Delete expired data: sessions, sign-ins, challenges, members who left, answered breakers, old readings."""

import logging
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import CursorResult

from models import transaction
from models.db import future_times
from models.db.session import AsyncSession, Question
from services.accounts import forgotten_people, users
from services.accounts.developers import webhook_deliveries
from services.collections import stored_traits
from services.collections.census import reach, reach_by_day
from services.guilds import shared_invalid_requests
from services.guilds.gateway import interaction_claims, known_people
from services.holdings import stored_balances
from services.holdings.delegations import AGE_KEPT
from services.holdings.last_known import READINGS
from services.privacy import log_partitions, payouts
from services.roles import breaker, in_doubt, rival_names
from services.rules import limits, pausing
from services.rules.types import stored_address_lists
from services.runtime import database_faults, schedules
from services.runtime.schedules import Work
from services.triggers import quarantine, sightings, unreached_blocks
from services.wallets import challenges
from settings import settings

log = logging.getLogger(f"holdfast.{__name__}")

SCHEDULE = schedules.HOUSEKEEPING
"""The name of its row in the schedule."""
LEFT_DAYS = 30
"""How long a member who left a server is kept there; the privacy policy states all of these times."""
TOLD_DAYS, UNTOLD_DAYS = 30, 365
"""How long a notice is kept after it was shown, and if it never is; ended alerts are kept for the latter time."""
TALLY_DAYS, TRAIL_DAYS = 30, 180
"""How long a wallet's count of matching tokens is kept, and the list of tokens that have reached it."""
RIVAL_DAYS = 30
"""How long a record of a rival that gave or took a role is kept."""
STRANGERS = "strangers"
"""The name of the schedule that deletes members for whom there is no reason to store them."""
SERVERS_AT_ONCE = 50
"""The most servers that one turn searches for such members."""
AT_ONCE = 50_000
"""Lines of the log, and expired rows of a table, that one transaction deletes."""


class StepsFailed(Exception):
    """Some steps of housekeeping failed; the text names them."""


@dataclass(frozen=True, slots=True)
class Step:
    """A part of housekeeping with a transaction of its own, so that its failure or length affects no other.

    With `in_portions`, the work returns how many rows it deleted, and is repeated while these are AT_ONCE.
    """

    name: str
    work: Work
    in_portions: bool = False


async def housekeep(db: AsyncSession) -> None:
    """Delete everything that is older than it may be. If the log may have more of it, make the next turn due at once.

    The caller's transaction holds the row of the schedule until the last step has ended, so no other process begins.
    Raises StepsFailed after all steps if some of them failed, so that the turn counts as not taken.
    """
    failed = list[str]()
    for step in (*STEPS, _LOG):
        try:
            last = await _run(step)
        except Exception as fault:
            if database_faults.is_absent(fault):
                raise
            log.exception("housekeeping step failed step=%s", step.name)
            failed.append(step.name)
        else:
            if step is _LOG and last == AT_ONCE:
                await schedules.bring_forward(db, SCHEDULE)
    if failed:
        raise StepsFailed(", ".join(failed))


async def _run(step: Step) -> object:
    """Run a step, and return the result of its last transaction."""
    while True:
        async with transaction() as db:
            last = await step.work(db)
        if not step.in_portions or last != AT_ONCE:
            return last


async def forget_strangers(db: AsyncSession) -> None:
    """Delete members for whom there is no reason to store them any more, some at a time, one server after the other.

    Earlier versions stored every member. The row of an erased person is deleted here too.
    """
    (found,) = await db.together(("SELECT done FROM schedule WHERE name = :name", {"name": STRANGERS}))
    server_id, gone = int(found[0][0]) if found else 0, 0
    for _ in range(SERVERS_AT_ONCE):
        after = server_id
        server_id, gone = await known_people.forget_strangers(db, after)
        if gone == known_people.DELETED_AT_ONCE:
            server_id = after
        if gone or not server_id:
            break
    await db.execute("UPDATE schedule SET done = :server WHERE name = :name", {"name": STRANGERS, "server": server_id})
    if server_id or gone:
        await schedules.bring_forward(db, STRANGERS)


async def clear_log(db: AsyncSession, days: int) -> int:
    """Delete the oldest lines of the log older than `days`, at most AT_ONCE; return how many.

    With 0 days the log is kept forever. Lines are read in the order of their ids, which is the order of time. Months
    without a line to keep are left to `log_partitions`, which drops them whole.
    """
    if days == 0:
        return 0
    gone = await db.execute(
        """
        WITH oldest AS (SELECT id, at FROM event WHERE id >= :first ORDER BY id LIMIT :most),
        gone AS (DELETE FROM event e USING oldest o WHERE e.id = o.id
                 AND o.at < now() - make_interval(days => :days) RETURNING 1)
        SELECT count(*) FROM gone
        """,
        {"most": AT_ONCE, "days": days, "first": await log_partitions.kept_from(db, days)},
    )
    return int(gone.scalar_one())


def _expired(table: str, which: str, name: str = "", **values: object) -> Step:
    """Return the step that deletes the rows of a table (as `t`) that match a condition in SQL."""
    statement = f"""
        DELETE FROM {table} WHERE ctid = ANY(ARRAY(
            SELECT t.ctid FROM {table} t WHERE {which} LIMIT :most FOR UPDATE OF t SKIP LOCKED))
    """

    async def work(db: AsyncSession) -> int:
        gone = await db.execute(statement, {**values, "most": AT_ONCE})
        return cast("CursorResult[Any]", gone).rowcount

    return Step(name or table, work, in_portions=True)


def _correction(number: int, question: Question) -> Step:
    statement, values = question

    async def work(db: AsyncSession) -> None:
        await db.execute(statement, values)

    return Step(f"future_times_{number}", work)


_OWN_WALLET = "w.family = 'evm' AND w.address = t.delegate AND w.chain IN ('', t.chain)"
# What was read about a wallet that was removed, or about a vault that no longer delegates to one: only the address is
# known, so a deletion of the former owner's data does not find it.
_IS_NOBODYS = """
    NOT EXISTS (SELECT 1 FROM wallet w WHERE w.family IN ('evm', 'solana') AND w.address = t.address)
    AND NOT EXISTS (SELECT 1 FROM delegation d WHERE d.vault = t.address)
"""
COLLECTIONS_KEPT = 100_000
"""So many of the newest collections are kept whatever names them: anybody may look up all contracts of a chain. An
older one, and its name, is kept while a rule names it or something was read about its tokens."""
_IS_UNNAMED = """
    t.id <= (SELECT id FROM collection ORDER BY id DESC OFFSET :kept LIMIT 1)
    AND NOT EXISTS (SELECT 1 FROM token k WHERE k.collection_id = t.id)
    AND NOT EXISTS (SELECT 1 FROM delegation d WHERE d.chain = t.chain AND d.contract = t.contract)
    AND t.contract NOT IN (
        SELECT contract FROM (
            SELECT jsonb_path_query(r.expression, '$.**.contract') #>> '{}' AS contract FROM rule r) named
        WHERE contract IS NOT NULL)
"""
STEPS = (
    # Secrets that are kept are sealed with the present key.
    Step("webhook_secrets", webhook_deliveries.seal_again),
    *(_correction(number, question) for number, question in enumerate(future_times.corrections())),
    Step("forgotten_people", forgotten_people.clear),
    _expired("session", "expires_at < now()"),
    Step("grants", lambda db: users.drop_unused_grants(db, AT_ONCE), in_portions=True),
    _expired("sign_in", "expires_at < now()"),
    _expired("handover", "expires_at < now()"),
    _expired("challenge", "expires_at < now() - :kept", kept=challenges.KEPT),
    Step("sightings", sightings.clear),
    Step("quarantine", quarantine.clear),
    Step("unreached_blocks", unreached_blocks.correct),
    Step("traits", stored_traits.forget_old),
    Step("reach", reach.forget),
    Step("reach_days", reach_by_day.forget),
    Step("refusals", shared_invalid_requests.clear),
    Step("in_doubt", in_doubt.clear),
    Step("role_refusals", pausing.forget_refusals),
    Step("rules_beyond_limits", limits.pause),
    Step("address_lists", stored_address_lists.clear),
    Step("webhook_deliveries", webhook_deliveries.clear),
    Step("surveys", stored_balances.forget_replaced),
    Step("role_watches", known_people.forget_watches),
    Step("interaction_claims", interaction_claims.forget_old),
    # A member who returns later is recorded as new; the privacy policy names the time.
    _expired("member", "left_at < now() - make_interval(days => :days)", days=LEFT_DAYS),
    _expired("tally", "observed_at < now() - make_interval(days => :days)", days=TALLY_DAYS),
    _expired("token_trail", "updated_at < now() - make_interval(days => :days)", days=TRAIL_DAYS),
    _expired("ended_delegation", "ended_at < now() - :kept", kept=AGE_KEPT),
    *(_expired(table, f"NOT EXISTS (SELECT 1 FROM wallet w WHERE {_OWN_WALLET})")
      for table in ("delegation", "delegation_read")),
    *(_expired(table, _IS_NOBODYS, f"{table}_of_nobody") for table in READINGS),
    _expired("collection", _IS_UNNAMED, kept=COLLECTIONS_KEPT),
    _expired("notice", "told_at < now() - make_interval(days => :days)", "told_notices", days=TOLD_DAYS),
    _expired("notice", "created_at < now() - make_interval(days => :days)", "untold_notices", days=UNTOLD_DAYS),
    _expired("alert", "ended_at < now() - make_interval(days => :days)", days=UNTOLD_DAYS),
    _expired("rival_move", "at < now() - make_interval(days => :days)", days=RIVAL_DAYS),
    Step("rival_names", rival_names.give_up),
    Step("breakers", breaker.clear),
    Step("deleted_rules", pausing.sweep_deleted),
    Step("payout_listings", lambda db: payouts.forget(db, settings().log_days)),
)  # fmt: skip
"""What `housekeep` does, except the log."""
_LOG = Step("log", lambda db: clear_log(db, settings().log_days))
