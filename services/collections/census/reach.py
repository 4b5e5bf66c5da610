"""How many addresses meet the conditions of a rule, and how many of them are verified: request and read a count."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

from psycopg.errors import QueryCanceled
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlmodel import col, select

from gateways import Gateways
from locales import N_, _, ngettext, number
from locales.stored_texts import said, storable
from models import Reach, Rule
from models.db import row_ids
from models.db.session import AsyncSession
from services.collections.census import census_queue, reach_numbers
from services.collections.census.reach_numbers import ReachNumbers
from services.collections.standards import ContractKey
from services.core.actors import Actor
from services.core.errors import ReachNotFound, ServerNotFound, TooMany
from services.core.json_view import Internal, json_view
from services.engine.previews import identifying, preview_log
from services.engine.previews.proposals import OneRule
from services.engine.previews.try_address import asked_rule
from services.guilds import permissions
from services.rules.expression import Expression, parse_stored, requirements, to_document
from services.rules.types import stored_address_lists

KEPT = timedelta(hours=1)
"""How long a rule's numbers are kept; until then the same conditions are not counted again."""
FRESH = timedelta(minutes=1)
"""How old a count of a collection may be for another rule's numbers."""
LONGEST = timedelta(hours=6)
"""How long a rule's counts may take; a new request continues from where they stopped."""
MOST_AN_HOUR = 120
"""How many rules one server may have counted within an hour; newly counted collections are not read again."""
COUNT_SECONDS = 120
"""How long the numbers of one rule may take to add up."""
TOO_SLOW = N_("The numbers of this rule take too long to add up. Ask about fewer conditions at once.")
TOO_LONG = N_("The count did not end within {hours} hours. Ask again to go on from where it is.")


@json_view
class ReachOnChain:
    """How many addresses meet a condition on this chain, and up to which block; `holders` is null without a number."""

    chain: str
    holders: int | None
    block: int | None


@json_view
class ReachView:
    """A rule's numbers: `state` is `counting`, `done` or `failed`.

    `holders` and `verifiedHere` are null until it is done. `reason` says why it failed, or what nobody confirms.
    """

    id: int
    state: str
    progress: float
    holders: int | None
    verified_here: int | None
    chains: tuple[ReachOnChain, ...]
    reason: str | None
    ended_at: Internal[datetime | None] = None
    """When the numbers were added up; they are kept for a while."""


async def begin(db: AsyncSession, outside: Gateways, actor: Actor, proposal: OneRule) -> int:
    """Request a count of the addresses that meet a new, a changed or a stored rule; return the id of the result.

    The same conditions are counted once within KEPT. Raises what `try_address.asked_rule` raises, and TooMany.
    """
    rule = await asked_rule(db, outside, actor, proposal)
    digest = digest_of(rule.tree)
    await db.execute("SELECT 1 FROM server WHERE id = :server FOR NO KEY UPDATE", {"server": rule.server_id})
    found = await db.execute(
        """
        SELECT id FROM reach WHERE server_id = :server AND digest = :digest AND state <> 'failed'
        AND created_at > now() - :kept ORDER BY id DESC LIMIT 1
        """,
        {"server": rule.server_id, "digest": digest, "kept": KEPT},
    )
    kept = found.scalar_one_or_none()
    if kept is not None:
        return int(kept)
    await _check_rate(db, rule.server_id)
    if identifying.is_identifying(rule.tree):
        await preview_log.note(db, actor, _row(rule.server_id, rule.tree), deletes=False, singling=True)
    return await start(db, rule.server_id, rule.tree)


async def start(db: AsyncSession, server_id: int, tree: Expression, *, daily: bool = False) -> int:
    """Enqueue the counts that a rule's numbers need, and return the id of the numbers."""
    refused = reach_numbers.refusal(tree)
    row = Reach(
        server_id=server_id, digest=digest_of(tree), expression=to_document(tree), daily=daily,
        state="counting" if refused is None else "failed", reason=refused or "",
    )  # fmt: skip
    db.add(row)
    await db.flush()
    if refused is None:
        for chain, contract in sorted(reach_numbers.places_of(tree)):
            census_id = await census_queue.request_count(db, chain, contract, FRESH)
            await db.execute(
                "INSERT INTO reach_census (reach_id, census_id) VALUES (:reach, :census)",
                {"reach": row.id, "census": census_id},
            )
        await db.execute("SELECT pg_notify(:channel, '')", {"channel": census_queue.CHANNEL})
    return cast("int", row.id)


async def get(db: AsyncSession, outside: Gateways, actor: Actor, reach_id: int) -> ReachView:
    """Return a rule's numbers, or how far their counts are. Raises ReachNotFound for people who do not run the server.

    Raises TooMany, ProviderUnavailable.
    """
    row = await db.get(Reach, reach_id) if row_ids.fits(reach_id) else None
    if row is None:
        raise ReachNotFound
    try:
        await permissions.require_admin_to_read(db, outside, actor, row.server_id)
    except ServerNotFound:
        raise ReachNotFound from None
    return await view(db, row)


async def view(db: AsyncSession, row: Reach) -> ReachView:
    """Return stored numbers as people see them."""
    reason = said(row.reason) if row.reason else None
    if row.state == "done":
        chains = tuple(ReachOnChain(one["chain"], one["holders"], one["block"]) for one in row.chains)
        return ReachView(row.id or 0, "done", 1.0, row.holders, row.verified, chains, reason, row.ended_at)
    counts = await _counts(db, row.id or 0)
    blocks = dict[str, int | None]()
    for leaf in requirements(parse_stored(row.expression)):
        found = counts.get((leaf.chain, leaf.contract))
        block = found.block if found is not None and found.block >= 0 else None
        known = blocks.get(leaf.chain, block)
        blocks[leaf.chain] = None if block is None or known is None else min(block, known)
    chains = tuple(ReachOnChain(chain, None, block) for chain, block in blocks.items() if chain)
    progress = min(0.99, sum(one.progress for one in counts.values()) / len(counts)) if counts else 0.0
    return ReachView(row.id or 0, row.state, round(progress, 4), None, None, chains, reason)


@dataclass(frozen=True, slots=True)
class _Count:
    id: int
    state: str
    block: int
    head: int | None
    progress: float
    reason: str


async def _counts(db: AsyncSession, reach_id: int) -> dict[ContractKey, _Count]:
    found = await db.execute(
        """
        SELECT c.chain, c.contract, c.id, c.state, c.block, c.head, c.reason, CASE
            WHEN c.state = 'done' THEN 1 WHEN c.target IS NULL THEN 0
            WHEN c.chain <> 'solana' THEN (c.block + 1.0) / (c.target + 1)
            WHEN c.again THEN 0.5 + 0.5 * c.moves / GREATEST(c.tokens, 1)
            ELSE 0.5 * c.moves / (c.moves + 5000.0) END
        FROM reach_census r JOIN census c ON c.id = r.census_id WHERE r.reach_id = :reach
        """,
        {"reach": reach_id},
    )
    return {
        (str(chain), str(contract)): _Count(census_id, state, block, head, min(1.0, float(progress)), reason)
        for chain, contract, census_id, state, block, head, reason, progress in found.all()
    }


_LAST = "SELECT max(d.ended_at) FROM reach d WHERE d.server_id = reach.server_id AND d.state <> 'counting'"
"""The SQL for the time at which a server last got numbers."""


async def next_ended(db: AsyncSession) -> Reach | None:
    """Return one rule's numbers whose counts have all ended or exceeded LONGEST, and lock them; None if none has.

    Call it first in a transaction. The transaction then sees one snapshot of the counts.
    """
    # Adding up takes long. A count that begins again meanwhile is not read half done, and need not wait.
    await db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    found = await db.exec(
        select(Reach)
        .where(Reach.state == "counting")
        .where(
            text(
                "(reach.created_at < now() - :longest OR NOT EXISTS ("
                "SELECT 1 FROM reach_census n JOIN census c ON c.id = n.census_id "
                "WHERE n.reach_id = reach.id AND c.state = 'counting'))"
            ).bindparams(longest=LONGEST)
        )
        # Servers take turns: the one that has waited longest since its last numbers comes first.
        .order_by(text(f"({_LAST}) NULLS FIRST"), col(Reach.id))
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    return found.first()


async def settle(db: AsyncSession, row: Reach) -> None:
    """Compute one rule's numbers, which `next_ended` returned."""
    tree, counts = parse_stored(row.expression), await _counts(db, row.id or 0)
    places = reach_numbers.places_of(tree)
    failed = [one.reason for one in counts.values() if one.state == "failed"]
    if (refused := reach_numbers.refusal(tree)) is not None:
        row.state, row.reason = "failed", refused  # a newer version counts these conditions, this one does not
    elif not all((one := counts.get(place)) is not None and one.state == "done" for place in places):
        row.state = "failed"
        row.reason = failed[0] if failed else storable(TOO_LONG, hours=LONGEST // timedelta(hours=1))
    elif not await reach_numbers.has_lists(db, tree, row.server_id):
        row.state, row.reason = "failed", stored_address_lists.GONE
    elif (
        odd := await reach_numbers.unfitting_count(db, tree, ids := {place: counts[place].id for place in places})
    ) is not None:
        row.state, row.reason = "failed", odd
    elif (result := await _numbers(db, tree, row.server_id, ids)) is None:
        row.state, row.reason = "failed", TOO_SLOW
    else:
        row.state, row.holders, row.verified = "done", result.holders, result.verified
        row.reason = next((counts[place].reason for place in places if counts[place].reason), "")
        row.chains = [
            {
                "chain": each.chain,
                "holders": each.holders,
                "block": min(counts[place].head or 0 for place in places if place[0] == each.chain),
            }
            for each in result.chains
        ]
    await db.flush()
    await db.execute("UPDATE reach SET ended_at = now() WHERE id = :reach", {"reach": row.id})


async def give_up(db: AsyncSession, reach_id: int, reason: str) -> None:
    """Store that a rule's numbers could not be computed, and why."""
    await db.execute(
        "UPDATE reach SET state = 'failed', reason = :reason, ended_at = now() WHERE id = :reach",
        {"reach": reach_id, "reason": reason},
    )


async def _numbers(
    db: AsyncSession, tree: Expression, server_id: int, ids: Mapping[ContractKey, int]
) -> ReachNumbers | None:
    """Return a rule's numbers, or None if they take longer than COUNT_SECONDS."""
    try:
        async with db.begin_nested():
            await db.execute(f"SET LOCAL statement_timeout = '{COUNT_SECONDS}s'")
            return await reach_numbers.count(db, tree, server_id, ids)
    except DBAPIError as fault:
        if not isinstance(fault.orig, QueryCanceled):
            raise
        return None


async def _check_rate(db: AsyncSession, server_id: int) -> None:
    """Raise TooMany when the server has had MOST_AN_HOUR rules counted within an hour."""
    found = await db.execute(
        "SELECT count(*), extract(epoch FROM min(created_at) + interval '1 hour' - now()) FROM reach "
        "WHERE server_id = :server AND NOT daily AND created_at > now() - interval '1 hour'",
        {"server": server_id},
    )
    times, wait = found.one()
    if int(times) >= MOST_AN_HOUR:
        raise TooMany(
            _("This server has had {most} rules counted within an hour. Please try again later.").format(
                most=MOST_AN_HOUR
            ),
            float(wait),
        )


async def forget(db: AsyncSession) -> None:
    """Delete expired numbers, and counts that nobody has requested for a week."""
    await db.execute(
        "DELETE FROM reach WHERE state <> 'counting' AND created_at < now() - :kept "
        "AND (ended_at IS NULL OR ended_at < now() - :kept)",
        {"kept": KEPT},
    )
    await db.execute(
        "DELETE FROM census c WHERE wanted_at < now() - interval '7 days' "
        "AND NOT EXISTS (SELECT 1 FROM reach_census r WHERE r.census_id = c.id)"
    )


def in_words(holders: int, verified: int) -> str:
    """Return a rule's numbers as a sentence."""
    sentence = ngettext(
        "{count} address meets this, {verified} verified here.",
        "{count} addresses meet this, {verified} verified here.",
        holders,
    )
    return sentence.format(count=number(holders), verified=number(verified))


def digest_of(tree: Expression) -> str:
    """Return a digest of the conditions of a rule."""
    return hashlib.sha256(json.dumps(to_document(tree), sort_keys=True).encode()).hexdigest()


def _row(server_id: int, tree: Expression) -> Rule:
    """Return a rule that has only these conditions, for the log."""
    first = next(requirements(tree))
    return Rule(
        server_id=server_id, name="", role_id="", role_name="", verification_type=first.type,
        contract_address=first.contract, blockchain=first.chain, created_by="", expression=to_document(tree),
    )  # fmt: skip
