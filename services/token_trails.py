"""Where to look for wallets' tokens: what nodes' logs and earlier looks told, kept from one look to the next."""

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import func, text
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col, select

import models
from gateways.token_sheet import Trail
from models.session import AsyncSession

ROWS_A_STATEMENT = 2_000

Trails = Mapping[str, Mapping[str, Trail]]
"""Contract → wallet → trail, on one chain."""


async def load(db: AsyncSession, chain: str, contracts: Sequence[str], owners: Sequence[str]) -> Trails:
    """The trails of these wallets."""
    if not contracts:
        return {}
    rows = await db.exec(
        select(models.TokenTrail).where(
            models.TokenTrail.chain == chain,
            col(models.TokenTrail.contract).in_(contracts),
            col(models.TokenTrail.address).in_(owners),
        )
    )
    found: dict[str, dict[str, Trail]] = {}
    for row in rows.all():
        searched = {int(node): (int(first), int(last)) for node, (first, last) in row.searched.items()}
        found.setdefault(row.contract, {})[row.address] = Trail(frozenset(row.ids), searched)
    return found


async def remember(db: AsyncSession, found: Iterable[tuple[str, str, str, Trail]]) -> None:
    """Keep trails (chain, contract, wallet, trail). What somebody else found meanwhile stays known.

    Ids are only ever added: who says that blocks were searched must not have lost what was found there.
    """
    merged: dict[tuple[str, str, str], Trail] = {}
    for chain, contract, address, trail in found:
        merged[chain, contract, address] = _both(merged.get((chain, contract, address), Trail()), trail)
    rows = {
        (chain, contract, address): {
            "chain": chain, "contract": contract, "address": address, "ids": sorted(trail.ids),
            "searched": {str(node): list(span) for node, span in trail.searched.items()}, "updated_at": models.now(),
        }
        for (chain, contract, address), trail in merged.items()
    }  # fmt: skip
    values = [rows[key] for key in sorted(rows)]
    for start in range(0, len(values), ROWS_A_STATEMENT):
        statement = insert(models.TokenTrail).values(values[start : start + ROWS_A_STATEMENT])
        both = text(
            "(SELECT coalesce(array_agg(DISTINCT one), '{}') FROM unnest(token_trail.ids || excluded.ids) AS one)"
        )
        await db.execute(
            statement.on_conflict_do_update(
                index_elements=["chain", "contract", "address"],
                set_={"ids": both, "searched": statement.excluded.searched, "updated_at": func.now()},
            )
        )


def _both(one: Trail, other: Trail) -> Trail:
    """What two looks found; of what a node searched, the longer stretch."""
    searched = dict(one.searched)
    for node, (first, last) in other.searched.items():
        before = searched.get(node, (0, -1))
        searched[node] = (first, last) if last - first >= before[1] - before[0] else before
    return Trail(one.ids | other.ids, searched)
