"""Hints for finding wallets' tokens, from nodes' logs and earlier reads."""

import json
from collections.abc import Iterable, Mapping, Sequence

from sqlmodel import select

import models
from gateways.chains.token_sheet import TokenHints
from gateways.transport.chunks import chunks
from models.db.session import AsyncSession, any_of

ROWS_A_STATEMENT = 2_000

Trails = Mapping[str, Mapping[str, TokenHints]]
"""Contract → wallet → hints, on one chain."""

# As one parameter: SQLAlchemy would compile a statement of thousands of rows for a second.
_STORE = """
INSERT INTO token_trail (chain, contract, address, ids, searched, gone, updated_at)
SELECT chain, contract, address, ids, searched, gone, now() FROM json_to_recordset(CAST(:rows AS json))
    AS new (chain text, contract text, address text, ids text[], searched jsonb, gone jsonb)
ON CONFLICT (chain, contract, address) DO UPDATE SET
    ids = (SELECT coalesce(array_agg(DISTINCT one), '{}') FROM unnest(token_trail.ids || excluded.ids) AS one),
    searched = excluded.searched, gone = excluded.gone, updated_at = now()
"""


async def load(db: AsyncSession, chain: str, contracts: Sequence[str], owners: Sequence[str]) -> Trails:
    """Return the hints for these wallets."""
    if not contracts:
        return {}
    rows = await db.exec(
        select(models.TokenTrail).where(
            models.TokenTrail.chain == chain,
            any_of(models.TokenTrail.contract, contracts),
            any_of(models.TokenTrail.address, owners),
        )
    )
    found: dict[str, dict[str, TokenHints]] = {}
    for row in rows.all():
        searched = {int(node): (int(first), int(last)) for node, (first, last) in row.searched.items()}
        found.setdefault(row.contract, {})[row.address] = TokenHints(
            frozenset(row.ids), searched, {one: int(block) for one, block in row.gone.items()}
        )
    return found


async def remember(db: AsyncSession, found: Iterable[tuple[str, str, str, TokenHints]]) -> None:
    """Store hints (chain, contract, wallet, hints), merged with those stored meanwhile.

    Ids are added, and dropped only if a read says so: blocks that count as searched are not searched again for them.
    The next read finds an id that returned meanwhile, because it first asks which tokens the owner holds.
    """
    merged: dict[tuple[str, str, str], TokenHints] = {}
    for chain, contract, address, trail in found:
        merged[chain, contract, address] = _both(merged.get((chain, contract, address), TokenHints()), trail)
    # In a fixed order, so that overlapping calls wait for each other instead of deadlocking.
    rows = [
        {
            "chain": chain, "contract": contract, "address": address, "ids": sorted(trail.ids),
            "searched": {str(node): list(span) for node, span in trail.searched.items()}, "gone": dict(trail.gone),
        }
        for (chain, contract, address), trail in sorted(merged.items(), key=lambda one: one[0])
    ]  # fmt: skip
    for part in chunks(rows, ROWS_A_STATEMENT):
        await db.execute(_STORE, {"rows": json.dumps(part)})
    await _drop(db, {key: trail.dropped - trail.ids for key, trail in merged.items()})


async def _drop(db: AsyncSession, gone: Mapping[tuple[str, str, str], Iterable[str]]) -> None:
    """Remove ids from hints, by chain, contract and wallet."""
    rows = [
        {"chain": chain, "contract": contract, "address": address, "gone": one}
        for (chain, contract, address), ids in sorted(gone.items())
        for one in sorted(ids)
    ]
    if not rows:
        return
    statement = """
        WITH dropped AS (
            SELECT chain, contract, address, array_agg(gone) AS gone
            FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS d (chain text, contract text, address text, gone text)
            GROUP BY chain, contract, address)
        UPDATE token_trail t
        SET ids = ARRAY(SELECT one FROM unnest(t.ids) AS one WHERE NOT one = ANY(d.gone) ORDER BY one),
            gone = t.gone - d.gone
        FROM dropped d WHERE (t.chain, t.contract, t.address) = (d.chain, d.contract, d.address)
    """
    await db.execute(statement, {"rows": json.dumps(rows)})


def still_wanted(db: AsyncSession, chain: str, contracts: Sequence[str], owners: Sequence[str]) -> None:
    """Record that these hints are in use, so that housekeeping keeps them; at most once a month."""
    db.later(
        "UPDATE token_trail SET updated_at = now() WHERE chain = :chain AND updated_at < now() - interval '30 days' "
        "AND contract = ANY(CAST(:contracts AS text[])) AND address = ANY(CAST(:owners AS text[]))",
        {"chain": chain, "contracts": list(contracts), "owners": list(owners)},
    )


def _both(one: TokenHints, other: TokenHints) -> TokenHints:
    """Return the merged hints of two reads; of searched blocks, the longer range."""
    searched = dict(one.searched)
    for node, (first, last) in other.searched.items():
        before = searched.get(node, (0, -1))
        searched[node] = (first, last) if last - first >= before[1] - before[0] else before
    gone = dict(other.gone) | {token: min(block, other.gone.get(token, block)) for token, block in one.gone.items()}
    return TokenHints(one.ids | other.ids, searched, gone, one.dropped | other.dropped)
