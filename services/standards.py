"""Which token standard a contract follows: asked when a rule names it, and kept beside the collection's name."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from sqlalchemy import tuple_
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col, select

from models import Collection
from models.database import AsyncSession
from services.addresses import shorten

Place = tuple[str, str]
"""A chain and a contract."""

MANY = "ERC1155"
"""The standard whose amounts are told token by token only."""
ONE_BY_ONE = "ERC721"
"""How the names of the standards begin whose tokens exist once each."""
MOST_KNOWN = 100


async def known(db: AsyncSession, places: Iterable[Place]) -> dict[Place, str]:
    """The standards that were found before."""
    wanted = sorted(set(places))
    if not wanted:
        return {}
    rows = await db.exec(
        select(Collection.chain, Collection.contract, Collection.standard).where(
            tuple_(col(Collection.chain), col(Collection.contract)).in_(wanted), col(Collection.standard).is_not(None)
        )
    )
    return {(chain, contract): standard for chain, contract, standard in rows.all() if standard}


async def countable(db: AsyncSession, chains: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Per chain some collections, those last heard of, that tell for any wallet how many of theirs it holds."""
    found: dict[str, tuple[str, ...]] = {}
    for chain in chains:
        rows = await db.exec(
            select(Collection.contract)
            .where(Collection.chain == chain, col(Collection.standard).startswith(ONE_BY_ONE))
            .order_by(col(Collection.updated_at).desc(), col(Collection.id))
            .limit(MOST_KNOWN)
        )
        found[chain] = tuple(sorted(rows.all()))
    return found


async def remember(db: AsyncSession, found: Mapping[Place, str], named: Mapping[Place, str] | None = None) -> None:
    """Keep the standards of contracts, and what those in `named` call themselves where nobody has looked them up.

    Such a row is too old to be believed, so that whoever looks it up gets what people call it.
    """
    if not found:
        return
    names = named or {}
    long_ago = datetime.fromtimestamp(0, UTC)
    rows = [
        {"chain": chain, "contract": contract, "name": names.get((chain, contract)) or shorten(contract), "source": "",
         "standard": standard, "updated_at": long_ago}
        for (chain, contract), standard in sorted(found.items())
    ]  # fmt: skip
    statement = insert(Collection).values(rows)
    await db.execute(
        statement.on_conflict_do_update(
            index_elements=["chain", "contract"], set_={"standard": statement.excluded.standard}
        )
    )
