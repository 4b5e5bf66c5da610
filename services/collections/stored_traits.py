"""Store the traits of single tokens for a while; `trait_sources.py` reads them, `trait_match.py` compares them."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from sqlalchemy import delete, tuple_
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col, select

from gateways.chains.metadata_traits import LONGEST_NUMBER, Trait
from gateways.transport.chunks import chunks
from models import Collection, Token, now
from models.db.session import AsyncSession
from services.collections.trait_match import TokenTraits
from services.collections.trait_sources import TokenKey
from services.core.addresses import shorten
from settings import settings

FRESH_AT_MOST = timedelta(hours=6)
KEPT_FOR = timedelta(days=90)
KEPT_BYTES = 1 << 30
"""How much is kept of all traits. Anybody can make tokens with long traits, and what is deleted can be read again."""
ROWS_A_STATEMENT = 5_000
# As one parameter: SQLAlchemy would compile a statement of thousands of rows for a second.
_STORE = """
INSERT INTO token (collection_id, token_id, traits, updated_at)
SELECT collection_id, token_id, traits, updated_at FROM json_to_recordset(CAST(:rows AS json))
    AS new (collection_id integer, token_id text, traits jsonb, updated_at timestamptz)
ON CONFLICT (collection_id, token_id) DO UPDATE SET traits = excluded.traits, updated_at = excluded.updated_at
WHERE token.updated_at <= excluded.updated_at
"""


def fresh_for() -> timedelta:
    """Return how long stored traits are used: some hours, and at most a quarter of the sweep's period."""
    return min(FRESH_AT_MOST, timedelta(seconds=settings().sweep_seconds / 4))


async def known(db: AsyncSession, places: Iterable[TokenKey]) -> dict[TokenKey, TokenTraits]:
    """Return the stored traits of these tokens, if read within `fresh_for`."""
    since = now() - fresh_for()
    wanted = sorted(set(places))
    found: dict[TokenKey, TokenTraits] = {}
    for part in chunks(wanted, ROWS_A_STATEMENT):
        rows = await db.exec(
            select(Collection.chain, Collection.contract, Token)
            .join(Collection, col(Collection.id) == col(Token.collection_id))
            .where(
                tuple_(col(Collection.chain), col(Collection.contract), col(Token.token_id)).in_(part),
                col(Token.updated_at) >= since,
            )
        )
        found.update({(chain, contract, token.token_id): of_row(token) for chain, contract, token in rows.all()})
    return found


async def remember(db: AsyncSession, found: Mapping[TokenKey, TokenTraits | str]) -> None:
    """Store traits; an unknown or an older reading does not overwrite stored ones."""
    known_now = {place: traits for place, traits in found.items() if not isinstance(traits, str)}
    if not known_now:
        return
    ids = await _collection_ids(db, {place[:2] for place in known_now})
    rows = [
        {
            "collection_id": ids[place[:2]], "token_id": place[2], "traits": _document(traits),
            "updated_at": traits.read_at.isoformat(),
        }
        for place, traits in sorted(known_now.items())
    ]  # fmt: skip
    for part in chunks(rows, ROWS_A_STATEMENT):
        await db.execute(_STORE, {"rows": json.dumps(part)})


def _document(traits: TokenTraits) -> dict[str, Any]:
    document: dict[str, Any] = {
        "source": traits.source,
        "whole": traits.whole,
        "traits": [[trait.kind, trait.value] for trait in traits.traits],
    }
    return document if traits.also is None else {**document, "also": _document(traits.also)}


async def forget_old(db: AsyncSession) -> None:
    """Delete tokens whose traits were last read more than KEPT_FOR ago, and the oldest of more than KEPT_BYTES."""
    await db.execute(delete(Token).where(col(Token.updated_at) < now() - KEPT_FOR))
    # The size of the table is known at once, and adding up its rows takes a second for a million.
    await db.execute(_FORGET_EXCESS, {"most": KEPT_BYTES})


_FORGET_EXCESS = """
    DELETE FROM token t USING (
        SELECT ctid AS place, sum(pg_column_size(traits)) OVER (ORDER BY updated_at DESC, ctid) AS so_far FROM token
        WHERE (SELECT pg_table_size('token')) > :most
    ) k WHERE t.ctid = k.place AND k.so_far > :most
"""


def of_row(token: Token) -> TokenTraits:
    """Return the traits stored in a row."""
    return _of_document(token.traits, token.updated_at)


def _of_document(document: Mapping[str, Any], read_at: datetime) -> TokenTraits:
    pairs = cast("list[tuple[str, str | int | float]]", document.get("traits", []))
    also = document.get("also")
    return TokenTraits(
        tuple(Trait(kind, _as_read(value)) for kind, value in pairs),
        str(document.get("source", "")),
        read_at,
        bool(document.get("whole", False)),
        None if also is None else _of_document(also, read_at),
    )


def _as_read(value: str | int | float) -> str | int | float:
    """Return a stored value as its source gave it: the database writes out all digits of a large number."""
    return float(value) if isinstance(value, int) and abs(value) >= _WRITTEN_OUT else value


_WRITTEN_OUT = 10**LONGEST_NUMBER
"""From here on a number without a fraction was a float: no longer one is read as a whole number."""


async def _collection_ids(db: AsyncSession, contracts: set[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """Return the ids of these collections; an unnamed one gets a row whose name counts as outdated."""
    long_ago = datetime.fromtimestamp(0, UTC)
    unnamed = [
        {"chain": chain, "contract": contract, "name": shorten(contract), "source": "", "updated_at": long_ago}
        for chain, contract in sorted(contracts)
    ]
    await db.execute(insert(Collection).values(unnamed).on_conflict_do_nothing(index_elements=["chain", "contract"]))
    rows = await db.exec(
        select(Collection).where(tuple_(col(Collection.chain), col(Collection.contract)).in_(sorted(contracts)))
    )
    return {(row.chain, row.contract): row.id or 0 for row in rows.all()}
