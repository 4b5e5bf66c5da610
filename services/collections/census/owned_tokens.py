"""The rows of a count and the most of them: transfers added up to the amount of each token that each address owns."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gateways.evm.tokens.transfer_history import TokenMove
from gateways.transport import base58
from models.db.session import AsyncSession, joined

NOBODY = "0x" + 20 * "00"
"""The zero address: the sender of a mint and the receiver of a burn."""
SETTLED, NEWEST, SECOND_READING = 0, 1, 2
"""Parts of a count; see models.CensusToken."""
MOST_TOKENS = 500_000
"""Pairs of an address and a token that one count keeps; about 80 MB of the database."""
_ROWS = 5_000
"""Rows that one statement writes."""

Amounts = Mapping[tuple[str, int], int]
"""By owner and token."""


class TooManyTokens(Exception):
    """The moves concern more tokens than a count keeps."""


class Written(NamedTuple):
    """By how many rows a part grew, and whether an owner now has a negative amount of a token."""

    added: int
    is_negative: bool


def number_of(mint: str) -> int:
    """Return the number by which a count names a token of Solana: its address as a whole number."""
    return int.from_bytes(base58.decode(mint) or b"", "big")


def added_up(moves: Iterable[TokenMove]) -> Amounts:
    """Return what the moves change, by owner and token; mints and burns change one side only.

    Raises TooManyTokens before it expands ranges of more than MOST_TOKENS in all, which would cost memory and time.
    """
    changes, ranged = Counter[tuple[str, int]](), 0
    for move in moves:
        ranged += move.last_id - move.first_id
        if ranged > MOST_TOKENS:
            raise TooManyTokens
        for token in range(move.first_id, move.last_id + 1):
            if move.sender != NOBODY:
                changes[move.sender, token] -= move.amount
            if move.receiver != NOBODY:
                changes[move.receiver, token] += move.amount
    return {place: amount for place, amount in changes.items() if amount}


async def add(db: AsyncSession, census_id: int, part: int, changes: Amounts) -> Written:
    """Add the changes to a part; rows that become zero are deleted."""
    added, is_negative = 0, False
    rows = await asyncio.to_thread(sorted, changes.items())
    for start in range(0, len(rows), _ROWS):
        values = _columns(census_id, part, rows[start : start + _ROWS])
        found = await db.execute(
            """
            WITH written AS (
                INSERT INTO census_token (census_id, part, owner, token, amount)
                SELECT :census, :part, owner, token, amount FROM unnest(
                    string_to_array(:owners, ','), CAST(string_to_array(:tokens, ',') AS numeric[]),
                    CAST(string_to_array(:amounts, ',') AS numeric[])) AS g (owner, token, amount)
                ON CONFLICT (census_id, part, owner, token)
                DO UPDATE SET amount = census_token.amount + EXCLUDED.amount
                RETURNING xmax = 0 AS is_new, amount, ctid)
            SELECT count(*) FILTER (WHERE is_new), count(*) FILTER (WHERE amount < 0),
                count(*) FILTER (WHERE amount = 0), string_agg(CAST(ctid AS text), ';') FILTER (WHERE amount = 0)
            FROM written
            """,
            values,
        )
        *counts, places = found.one()
        new, negative, zero = (int(one) for one in counts)
        if zero:
            # By `ctid`, which does not change within the transaction. A join would be planned from estimates of the
            # rows that the transaction has written; with wrong ones it would read the whole count for each row.
            await db.execute(
                "DELETE FROM census_token WHERE ctid = ANY(CAST(string_to_array(:places, ';') AS tid[]))",
                {"places": places},
            )
        added += new - zero
        is_negative = is_negative or bool(negative)
    return Written(added, is_negative)


async def clear(db: AsyncSession, census_id: int, *parts: int) -> None:
    """Delete all rows of these parts."""
    await db.execute(
        "DELETE FROM census_token WHERE census_id = :census AND part = ANY(CAST(:parts AS smallint[]))",
        {"census": census_id, "parts": list(parts)},
    )


async def is_negative_in_sum(db: AsyncSession, census_id: int) -> bool:
    """Return whether an owner has a negative amount of a token at the newest block."""
    found = await db.execute(
        """
        SELECT EXISTS (
            SELECT 1 FROM census_token WHERE census_id = :census AND part IN (:settled, :newest)
            GROUP BY owner, token HAVING sum(amount) < 0)
        """,
        {"census": census_id, "settled": SETTLED, "newest": NEWEST},
    )
    return bool(found.scalar_one())


async def readings_agree(db: AsyncSession, census_id: int) -> bool:
    """Return whether the first and the second reading of a list found the same tokens with the same owners."""
    found = await db.execute(
        """
        SELECT count(*) FROM (
            SELECT owner, token, count(*) AS times FROM census_token
            WHERE census_id = :census AND part IN (:first, :second) GROUP BY 1, 2 HAVING count(*) <> 2) AS once
        """,
        {"census": census_id, "first": SETTLED, "second": SECOND_READING},
    )
    return not int(found.scalar_one())


async def kinds(db: AsyncSession, census_id: int) -> tuple[bool, bool]:
    """Return whether a count has amounts of a coin, and whether it has tokens."""
    found = await db.execute(
        "SELECT EXISTS (SELECT 1 FROM census_token WHERE census_id = :census AND token < 0), "
        "EXISTS (SELECT 1 FROM census_token WHERE census_id = :census AND token >= 0)",
        {"census": census_id},
    )
    of_coin, of_tokens = found.one()
    return bool(of_coin), bool(of_tokens)


async def sampled(db: AsyncSession, census_id: int, most: int) -> tuple[int, dict[str, int]]:
    """Return the total of all owners, and the amounts of up to `most` of them, chosen at random."""
    found = await db.execute(
        """
        WITH held AS (
            SELECT owner, sum(amount) AS total FROM census_token
            WHERE census_id = :census AND part IN (:settled, :newest) GROUP BY owner HAVING sum(amount) <> 0)
        SELECT owner, total, (SELECT sum(total) FROM held) FROM held ORDER BY random() LIMIT :most
        """,
        {"census": census_id, "settled": SETTLED, "newest": NEWEST, "most": most},
    )
    rows = found.all()
    return int(rows[0][2]) if rows else 0, {str(owner): int(total) for owner, total, _ in rows}


def _columns(census_id: int, part: int, rows: Sequence[tuple[tuple[str, int], int]]) -> dict[str, object]:
    return {
        "census": census_id,
        "part": part,
        "owners": joined(owner for (owner, _), _ in rows),
        "tokens": joined(token for (_, token), _ in rows),
        "amounts": joined(amount for _, amount in rows),
    }
